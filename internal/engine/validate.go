package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Limits of what callers send.
const (
	MaxWaitTimeout = 30 * 24 * time.Hour
	MaxNotBefore   = 366 * 24 * time.Hour
	MaxReasonBytes = 500 // why a queue is paused
	// Of a bypass task.
	MaxAllowedTools      = 100
	MaxSystemPromptBytes = 64 << 10
	// Of a tool call.
	MaxToolNameBytes = 256
	MaxArgumentBytes = 4 << 20 // as much as a request to the MCP endpoint may have
	MaxMetadataBytes = 64 << 10
	MaxSecrets       = 100
	MaxSecretBytes   = 256 << 10
	MaxToolTimeoutMS = signalbox.MaxTimeoutSeconds * 1000
)

// normalize fills in defaults and validates. Errors name the field as in the API.
func (n *NewTask) normalize() error {
	if n.By.Kind == signalbox.PrincipalAgent && !n.Scheduled {
		n.Source = signalbox.SourceAgent // whatever the request says
	}
	n.Source = cmp.Or(n.Source, signalbox.SourceAPI)
	// A task of a session follows the agent that holds it, unless the submitter named an
	// agent.
	if n.SessionID != "" && n.Session == "" && n.Agent == "" {
		n.Session = signalbox.SessionRequire
	}
	if n.Mode == signalbox.ModeBypass && n.TimeoutSeconds == 0 {
		n.TimeoutSeconds = DefaultBypassTimeout
	}
	n.NotBefore = n.NotBefore.UTC().Truncate(time.Millisecond)
	if n.Mode == signalbox.ModeTool {
		n.Overflow = cmp.Or(n.Overflow, signalbox.OverflowPersist)
		n.Arguments, n.Metadata = orNil(n.Arguments), orNil(n.Metadata)
		return cmp.Or(n.checkNoAgent(), n.checkTool(), n.checkSecrets(), n.checkAny())
	}
	switch n.Mode {
	case signalbox.ModeChat:
		n.Overflow = cmp.Or(n.Overflow, signalbox.OverflowWait)
	case signalbox.ModeBypass:
		n.Overflow = cmp.Or(n.Overflow, signalbox.OverflowReject)
	default:
		n.Overflow = cmp.Or(n.Overflow, signalbox.OverflowPersist)
	}
	return cmp.Or(signalbox.CheckPrompt(n.Prompt), signalbox.CheckWords(n.Model, n.Tier, n.Project),
		n.Checking.Validate(), n.checkMode(), n.checkBypassOptions(), n.checkRoute(), n.checkAny())
}

// orNil returns nil for empty JSON and null.
func orNil(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// applyDefaults fills in configured defaults. They are not part of the digest, so that the
// same body has the same digest on every director.
func (n *NewTask) applyDefaults(o *Options) {
	if n.Priority == 0 {
		n.Priority = o.SourcePriority[n.Source]
	}
	// Even a task with overflow reject may have to wait: a task ahead of it in another
	// queue can take the slot.
	waits := n.Overflow == signalbox.OverflowWait || n.Overflow == signalbox.OverflowReject
	if waits && n.WaitTimeout == 0 && n.Mode != signalbox.ModeTool {
		n.WaitTimeout = o.WaitTimeout
	}
}

func (n *NewTask) checkMode() error {
	bypass, agents := n.Mode == signalbox.ModeBypass, n.Mode != signalbox.ModeQueue
	ofTool := n.Tool != "" || n.Arguments != nil || n.Metadata != nil || n.TimeoutMS != 0 || n.Secrets != nil || n.Calls || n.Waiter || n.ID != ""
	return cmp.Or(
		signalbox.CheckChoice("mode", n.Mode, signalbox.ModeChat, signalbox.ModeBypass, signalbox.ModeLand),
		signalbox.InvalidIf(agents && n.Agent == "", "agent", "a chat or bypass task needs an agent"),
		signalbox.CheckChoice("overflow", n.Overflow, signalbox.OverflowReject, signalbox.OverflowWait, signalbox.OverflowPersist),
		signalbox.InvalidIf(ofTool, "tool", "tool, arguments, metadata and timeout_ms belong to a tool call"),
		signalbox.InvalidIf(bypass && n.Overflow != signalbox.OverflowReject, "overflow", "a bypass task starts at once or is refused: it cannot wait"),
		signalbox.InvalidIf(n.NewSession && n.Mode != signalbox.ModeChat, "new_session", "new_session belongs to a chat"),
		signalbox.InvalidIf(n.NewSession && n.SessionID != "", "new_session", "new_session and session_id exclude each other"),
		signalbox.InvalidIf(bypass && n.SessionID != "", "session_id", "a bypass task has no conversation: use chat to go on with one"),
		signalbox.InvalidIf(!n.NotBefore.IsZero() && n.Overflow == signalbox.OverflowReject, "not_before", "a task that must start at once cannot have a not_before"),
	)
}

func (n *NewTask) checkBypassOptions() error {
	badTool := func(tool string) bool {
		return tool == "" || len(tool) > signalbox.MaxWordBytes || !signalbox.Printable(tool) || strings.HasPrefix(tool, "-")
	}
	return cmp.Or(
		signalbox.InvalidIf(n.Mode != signalbox.ModeBypass && (len(n.AllowedTools) > 0 || n.SystemPrompt != ""), "allowed_tools",
			"allowed_tools and system_prompt belong to a bypass task: a conversation keeps its own"),
		signalbox.InvalidIf(len(n.AllowedTools) > MaxAllowedTools, "allowed_tools", "allowed_tools has %d entries; at most %d are allowed", len(n.AllowedTools), MaxAllowedTools),
		signalbox.InvalidIf(slices.ContainsFunc(n.AllowedTools, badTool), "allowed_tools",
			"an entry of allowed_tools must be printable, 1 to %d bytes, and not begin with a hyphen", signalbox.MaxWordBytes),
		signalbox.InvalidIf(len(n.SystemPrompt) > MaxSystemPromptBytes || !utf8.ValidString(n.SystemPrompt) || strings.ContainsRune(n.SystemPrompt, 0), "system_prompt",
			"system_prompt must be UTF-8 without NUL and at most %d bytes", MaxSystemPromptBytes),
	)
}

func (n *NewTask) checkRoute() error {
	err := cmp.Or(n.Workspace.Check(n.Project), signalbox.RefuseExecutor(n.Agent), signalbox.CheckTarget(n.Agent, n.Kind, n.SessionID))
	if err == nil && n.SourceJob != "" {
		err = signalbox.CheckName("source_job", "the name of a job", n.SourceJob)
	}
	return err
}

// checkNoAgent refuses fields of a tool call that only agents' tasks have.
func (n *NewTask) checkNoAgent() error {
	for _, f := range []struct {
		field string
		given bool
	}{
		{"prompt", n.Prompt != ""}, {"model", n.Model != ""}, {"tier", n.Tier != ""}, {"timeout_seconds", n.TimeoutSeconds != 0},
		{"session_id", n.SessionID != ""}, {"session", n.Session != ""}, {"new_session", n.NewSession}, {"project", n.Project != nil},
		{"env", len(n.Env) > 0}, {"thinking", n.Thinking != nil}, {"workspace", n.Workspace != nil}, {"agent", n.Agent != ""}, {"kind", n.Kind != ""},
		{"allowed_tools", n.AllowedTools != nil}, {"system_prompt", n.SystemPrompt != ""}, {"not_before", !n.NotBefore.IsZero()},
		{"overflow", n.Overflow != signalbox.OverflowPersist}, {"checks", !n.Checking.IsZero()}, {"land", n.Landing != nil},
	} {
		if f.given {
			return signalbox.Invalid(f.field, "%s belongs to a task of an agent: a tool call has arguments, metadata and timeout_ms", f.field)
		}
	}
	return nil
}

func (n *NewTask) checkTool() error {
	bad := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.IsSpace(r) }
	return cmp.Or(
		signalbox.InvalidIf(n.Tool == "", "tool", "a tool call needs the name of a tool"),
		signalbox.InvalidIf(len(n.Tool) > MaxToolNameBytes || !utf8.ValidString(n.Tool) || strings.ContainsFunc(n.Tool, bad), "tool",
			"the name of a tool has 1 to %d printable characters", MaxToolNameBytes),
		signalbox.InvalidIf(n.TimeoutMS < 0 || n.TimeoutMS > MaxToolTimeoutMS, "timeout_ms", "timeout_ms must be 1 to %d, or left out, not %d", MaxToolTimeoutMS, int(n.TimeoutMS)),
		signalbox.InvalidIf(n.Waiter && !signalbox.ValidID(n.ID), "id", "a call that waits needs an id made by NewID"),
		signalbox.InvalidIf(!n.Waiter && n.ID != "", "id", "only a call that waits in line brings its id along"),
		signalbox.CheckObject("arguments", n.Arguments, MaxArgumentBytes),
		signalbox.CheckObject("metadata", n.Metadata, MaxMetadataBytes),
	)
}

// checkSecrets never quotes what it refuses.
func (n *NewTask) checkSecrets() error {
	size := 0
	for name, value := range n.Secrets {
		size += len(name) + len(value)
		if len(n.Secrets) <= MaxSecrets && !json.Valid([]byte(value)) {
			return signalbox.Invalid("arguments", "the secret property %q of arguments is not JSON", signalbox.Clip(name))
		}
	}
	return cmp.Or(
		signalbox.InvalidIf(len(n.Secrets) > MaxSecrets, "arguments", "arguments has %d secret properties; at most %d are allowed", len(n.Secrets), MaxSecrets),
		signalbox.CheckSize("arguments", "the secret properties of arguments have", size, MaxSecretBytes),
	)
}

// checkAny checks what tasks of agents and tool calls have in common.
func (n *NewTask) checkAny() error {
	if !slices.Contains(signalbox.Sources(), n.Source) {
		return signalbox.Invalid("source", "source must be one of %v, not %q", signalbox.Sources(), n.Source)
	}
	return cmp.Or(
		signalbox.CheckChoice("on_lost", n.OnLost, signalbox.LostFail, signalbox.LostRequeue),
		signalbox.CheckChoice("session", n.Session, signalbox.SessionRequire, signalbox.SessionPrefer),
		signalbox.InvalidIf(n.Session != "" && n.SessionID == "", "session", "session says how firmly session_id is bound to its agent; give a session_id too"),
		signalbox.InvalidIf(n.Session != "" && n.Agent != "", "session", "session and agent exclude each other: a named agent is always required"),
		signalbox.CheckRange("priority", n.Priority, signalbox.MinPriority, signalbox.MaxPriority),
		signalbox.CheckRange("timeout_seconds", n.TimeoutSeconds, 0, signalbox.MaxTimeoutSeconds),
		signalbox.InvalidIf(n.WaitTimeout < 0 || n.WaitTimeout > MaxWaitTimeout, "wait_timeout", "wait_timeout must be 0 to %d seconds", int(MaxWaitTimeout.Seconds())),
		signalbox.CheckEnv(n.Env),
		signalbox.InvalidIf(len(n.IdempotencyKey) > signalbox.MaxIdempotencyBytes || !signalbox.Printable(n.IdempotencyKey), "Idempotency-Key",
			"Idempotency-Key must be 1 to %d printable characters", signalbox.MaxIdempotencyBytes),
	)
}
