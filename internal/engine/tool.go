package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Limits of a tool call that is a task.
const (
	MaxToolNameBytes  = 256
	MaxArgumentBytes  = 4 << 20 // as much as a request to the MCP endpoint may have
	MaxMetadataBytes  = 64 << 10
	MaxSecrets        = 100
	MaxSecretBytes    = 256 << 10
	MaxToolTimeoutMS  = MaxTimeoutSeconds * 1000
	waiterBias        = 365 * 24 * time.Hour
	executorAgentKind = "executor"
)

// toolQueue is the queue of a tool call.
func (n *NewTask) toolQueue() string {
	if n.Calls || n.Waiter {
		return signalbox.QueueCalls
	}
	return signalbox.QueueCommands
}

// normalizeTool is normalize for a tool call.
func (n *NewTask) normalizeTool() error {
	n.Overflow = cmp.Or(n.Overflow, signalbox.OverflowPersist)
	n.Arguments, n.Metadata = orNil(n.Arguments), orNil(n.Metadata)
	for _, check := range []func() error{n.checkNoAgent, n.checkTool, n.checkArguments, n.checkSecrets, n.checkChoices, n.checkTimes, n.checkKey} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// orNil returns nil for empty JSON and null.
func orNil(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// checkNoAgent refuses fields that only agents' tasks have.
func (n *NewTask) checkNoAgent() error {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"prompt", n.Prompt != ""}, {"model", n.Model != ""}, {"tier", n.Tier != ""}, {"timeout_seconds", n.TimeoutSeconds != 0},
		{"session_id", n.SessionID != ""}, {"session", n.Session != ""}, {"new_session", n.NewSession}, {"project", n.Project != nil},
		{"env", len(n.Env) > 0}, {"thinking", n.Thinking != nil}, {"agent", n.Agent != ""}, {"kind", n.Kind != ""},
		{"allowed_tools", n.AllowedTools != nil}, {"system_prompt", n.SystemPrompt != ""}, {"not_before", !n.NotBefore.IsZero()},
		{"overflow", n.Overflow != signalbox.OverflowPersist},
	} {
		if f.given {
			return signalbox.Invalid(f.field, "%s belongs to a task of an agent: a tool call has arguments, metadata and timeout_ms", f.field)
		}
	}
	return nil
}

func (n *NewTask) checkTool() error {
	bad := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.IsSpace(r) }
	switch {
	case n.Tool == "":
		return signalbox.Invalid("tool", "a tool call needs the name of a tool")
	case len(n.Tool) > MaxToolNameBytes || !utf8.ValidString(n.Tool) || strings.ContainsFunc(n.Tool, bad):
		return signalbox.Invalid("tool", "the name of a tool has 1 to %d printable characters", MaxToolNameBytes)
	case n.TimeoutMS < 0 || n.TimeoutMS > MaxToolTimeoutMS:
		return signalbox.Invalid("timeout_ms", "timeout_ms must be 1 to %d, or left out, not %d", MaxToolTimeoutMS, n.TimeoutMS)
	case n.Waiter && !signalbox.ValidID(n.ID):
		return signalbox.Invalid("id", "a call that waits needs an id made by NewID, not %q", clip(n.ID))
	case !n.Waiter && n.ID != "":
		return signalbox.Invalid("id", "only a call that waits in line brings its id along")
	}
	return nil
}

func (n *NewTask) checkArguments() error {
	if err := checkObject("arguments", n.Arguments, MaxArgumentBytes); err != nil {
		return err
	}
	return checkObject("metadata", n.Metadata, MaxMetadataBytes)
}

func checkObject(field string, raw json.RawMessage, most int) error {
	switch {
	case len(raw) > most:
		return &signalbox.Error{Code: signalbox.CodeTooLarge, Field: field,
			Message: fmt.Sprintf("%s has %d bytes; at most %d are allowed", field, len(raw), most)}
	case len(raw) > 0 && (raw[0] != '{' || !json.Valid(raw)):
		return signalbox.Invalid(field, "%s must be a JSON object such as {\"name\": \"value\"}", field)
	case !utf8.Valid(raw):
		return signalbox.Invalid(field, "%s is not valid UTF-8", field)
	}
	return nil
}

// checkSecrets never quotes what it refuses.
func (n *NewTask) checkSecrets() error {
	if len(n.Secrets) > MaxSecrets {
		return signalbox.Invalid("arguments", "arguments has %d secret properties; at most %d are allowed", len(n.Secrets), MaxSecrets)
	}
	size := 0
	for name, value := range n.Secrets {
		size += len(name) + len(value)
		if !json.Valid([]byte(value)) {
			return signalbox.Invalid("arguments", "the secret property %q of arguments is not JSON", clip(name))
		}
	}
	if size > MaxSecretBytes {
		return &signalbox.Error{Code: signalbox.CodeTooLarge, Field: "arguments",
			Message: fmt.Sprintf("the secret properties of arguments have %d bytes; at most %d are allowed", size, MaxSecretBytes)}
	}
	return nil
}

// toolCallOrigin finds the execution in which an agent makes a tool call. It only records
// it: a tool waits for no agent, so it cannot close a cycle.
func (e *Engine) toolCallOrigin(ctx context.Context, n *NewTask) (callOrigin, error) {
	if n.By.Kind != signalbox.PrincipalAgent || n.CallerID == "" {
		return callOrigin{}, nil
	}
	parent, err := e.store.Task(ctx, n.CallerID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return callOrigin{}, nil
	}
	return callOrigin{parent: parent.ID, depth: parent.Depth}, err
}

// executorRefusal is the error for addressing the director's own executor as an agent; nil
// for any other name.
func executorRefusal(name string) error {
	kind, ok := signalbox.ExecutorKind(name)
	if !ok {
		return nil
	}
	return &signalbox.Error{Code: signalbox.CodeUnsupported, Field: "agent", Message: fmt.Sprintf(
		"%s is the director's own executor of tool calls and no agent: call a tool as a task to give it work, cancel a task to take it away (signalbox cancel ID), or pause the queue %s", clip(name), kind)}
}

// PutExecutor adds or updates the director's own executor of a kind. It may have fewer
// slots than are in use: then it gets no new calls until enough are free.
//
// Errors: CodeValidation; those of the store.
func (e *Engine) PutExecutor(ctx context.Context, kind, instance string, slots int) (signalbox.Agent, error) {
	a := signalbox.Agent{
		Name: signalbox.ExecutorName(kind, instance), Kind: executorAgentKind, Slots: slots, Fencing: true,
		Source: signalbox.AgentInternal, CreatedAt: e.Now(),
	}
	switch {
	case !signalbox.IsExecutor(a.Name):
		return a, signalbox.Invalid("kind", "%q is no kind of executor", clip(kind))
	case !signalbox.ValidName(instance):
		return a, signalbox.Invalid("instance", "%q cannot be the name of an instance: %s", clip(instance), nameRule)
	case slots < 1 || slots > signalbox.MaxAgentSlots:
		return a, signalbox.Invalid("slots", "slots must be 1 to %d, not %d", signalbox.MaxAgentSlots, slots)
	}
	known, err := e.store.Agents(ctx)
	if err != nil {
		return a, err
	}
	for _, k := range known {
		if k.Name == a.Name {
			a.CreatedAt = k.CreatedAt
		}
	}
	err = e.store.PutAgent(ctx, a, signalbox.Entry{At: e.Now(), Kind: signalbox.EventAgentAdded, Agent: a.Name})
	if err == nil {
		e.hub.publish(&Applied{Kind: signalbox.EventAgentAdded, Task: signalbox.Task{Agent: a.Name}})
	}
	return a, err
}

// RemoveExecutor deletes the executor row of a director that is gone.
//
// Errors: CodeValidation; CodeConflict while it holds slots.
func (e *Engine) RemoveExecutor(ctx context.Context, name string) error {
	if !signalbox.IsExecutor(name) {
		return signalbox.Invalid("name", "%q is no executor", clip(name))
	}
	err := e.store.RemoveAgent(ctx, name, signalbox.Entry{At: e.Now(), Kind: signalbox.EventAgentRemoved, Agent: name})
	if err == nil {
		e.hub.publish(&Applied{Kind: signalbox.EventAgentRemoved, Task: signalbox.Task{Agent: name}})
	}
	return err
}

// Interrupt ends a waiting task because the director was restarted, for tools configured
// so.
func (e *Engine) Interrupt(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventUndeliverable, Reason: signalbox.ReasonInterrupted, Message: message})
}
