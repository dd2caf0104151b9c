package engine

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Limits of what callers send.
const (
	MaxPromptBytes    = signalbox.MaxPromptBytes
	MaxTimeoutSeconds = signalbox.MaxTimeoutSeconds
	MaxWaitTimeout    = 30 * 24 * time.Hour
	MaxEnvEntries     = 100
	MaxEnvBytes       = 64 << 10
	MaxWordBytes      = signalbox.MaxWordBytes
	MaxNotBefore      = 366 * 24 * time.Hour
	MaxPathBytes      = signalbox.MaxPathBytes
	MaxReasonBytes    = 500 // why a queue is paused
)

// normalize fills in defaults and validates. Errors name the field as in the API.
func (n *NewTask) normalize() error {
	if n.By.Kind == signalbox.PrincipalAgent && !n.Scheduled {
		n.Source = signalbox.SourceAgent // whatever the body says
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
	if n.Mode == signalbox.ModeTool {
		return n.normalizeTool()
	}
	n.defaultOverflow()
	n.NotBefore = n.NotBefore.UTC().Truncate(time.Millisecond)
	for _, check := range []func() error{n.checkPrompt, n.checkWords, n.checkMode, n.checkExtras, n.checkRouting, n.checkChoices, n.checkTimes, n.checkEnv, n.checkKey} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// defaultOverflow fills in the default policy of the mode.
func (n *NewTask) defaultOverflow() {
	if n.Overflow != "" {
		return
	}
	switch n.Mode {
	case signalbox.ModeChat:
		n.Overflow = signalbox.OverflowWait
	case signalbox.ModeBypass:
		n.Overflow = signalbox.OverflowReject
	default:
		n.Overflow = signalbox.OverflowPersist
	}
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
	talk := n.Mode == signalbox.ModeChat
	switch {
	case n.Mode != signalbox.ModeQueue && !talk && n.Mode != signalbox.ModeBypass:
		return signalbox.Invalid("mode", "mode must be chat or bypass, not %q", n.Mode)
	case n.Mode != signalbox.ModeQueue && n.Agent == "":
		return signalbox.Invalid("agent", "a chat or bypass task needs an agent")
	case !slices.Contains([]signalbox.Overflow{signalbox.OverflowReject, signalbox.OverflowWait, signalbox.OverflowPersist}, n.Overflow):
		return signalbox.Invalid("overflow", "overflow must be reject, wait or persist, not %q", n.Overflow)
	case n.Tool != "" || n.Arguments != nil || n.Metadata != nil || n.TimeoutMS != 0 || n.Secrets != nil || n.Calls || n.Waiter || n.ID != "":
		return signalbox.Invalid("tool", "tool, arguments, metadata and timeout_ms belong to a tool call")
	case n.Mode == signalbox.ModeBypass && n.Overflow != signalbox.OverflowReject:
		return signalbox.Invalid("overflow", "a bypass task starts at once or is refused: it cannot wait")
	case n.NewSession && !talk:
		return signalbox.Invalid("new_session", "new_session belongs to a chat")
	case n.NewSession && n.SessionID != "":
		return signalbox.Invalid("new_session", "new_session and session_id exclude each other")
	case n.Mode == signalbox.ModeBypass && n.SessionID != "":
		return signalbox.Invalid("session_id", "a bypass task has no conversation: use chat to go on with one")
	case !n.NotBefore.IsZero() && n.Overflow == signalbox.OverflowReject:
		return signalbox.Invalid("not_before", "a task that must start at once cannot have a not_before")
	}
	return nil
}

// Limits of bypass options.
const (
	// Limits of bypass options.
	MaxAllowedTools      = 100
	MaxSystemPromptBytes = 64 << 10
)

func (n *NewTask) checkExtras() error {
	if (len(n.AllowedTools) > 0 || n.SystemPrompt != "") && n.Mode != signalbox.ModeBypass {
		return signalbox.Invalid("allowed_tools", "allowed_tools and system_prompt belong to a bypass task: a conversation keeps its own")
	}
	if len(n.AllowedTools) > MaxAllowedTools {
		return signalbox.Invalid("allowed_tools", "allowed_tools has %d entries; at most %d are allowed", len(n.AllowedTools), MaxAllowedTools)
	}
	for _, tool := range n.AllowedTools {
		if tool == "" || len(tool) > MaxWordBytes || !signalbox.Printable(tool) || strings.HasPrefix(tool, "-") {
			return signalbox.Invalid("allowed_tools", "an entry of allowed_tools must be printable, 1 to %d bytes, and not begin with a hyphen", MaxWordBytes)
		}
	}
	if len(n.SystemPrompt) > MaxSystemPromptBytes || !utf8.ValidString(n.SystemPrompt) || strings.ContainsRune(n.SystemPrompt, 0) {
		return signalbox.Invalid("system_prompt", "system_prompt must be UTF-8 without NUL and at most %d bytes", MaxSystemPromptBytes)
	}
	return nil
}

func (n *NewTask) checkPrompt() error { return signalbox.CheckPrompt(n.Prompt) }

func (n *NewTask) checkWords() error { return signalbox.CheckWords(n.Model, n.Tier, n.Project) }

func (n *NewTask) checkRouting() error {
	if err := executorRefusal(n.Agent); err != nil {
		return err
	}
	switch {
	case n.Agent != "" && n.Kind != "":
		return signalbox.Invalid("kind", "agent and kind exclude each other: an agent has one kind")
	case n.Agent != "" && !signalbox.ValidName(n.Agent):
		return signalbox.Invalid("agent", "%q cannot be the name of an agent: %s", n.Agent, nameRule)
	case n.Kind != "" && !signalbox.ValidName(n.Kind):
		return signalbox.Invalid("kind", "%q cannot be a kind of agent: %s", n.Kind, nameRule)
	case n.SourceJob != "" && !signalbox.ValidName(n.SourceJob):
		return signalbox.Invalid("source_job", "%q cannot be the name of a job: %s", n.SourceJob, nameRule)
	case n.SessionID != "" && !signalbox.ValidSessionID(n.SessionID):
		return signalbox.Invalid("session_id", "session_id must be 1 to 128 letters, digits, dots, underscores or hyphens, begin with a letter or digit and not contain \"..\"")
	}
	return nil
}

const nameRule = "use 1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit"

func (n *NewTask) checkChoices() error {
	switch {
	case !slices.Contains(signalbox.Sources(), n.Source):
		return signalbox.Invalid("source", "source must be one of %v, not %q", signalbox.Sources(), n.Source)
	case n.OnLost != "" && n.OnLost != signalbox.LostFail && n.OnLost != signalbox.LostRequeue:
		return signalbox.Invalid("on_lost", "on_lost must be fail or requeue, not %q", n.OnLost)
	case n.Session != "" && n.Session != signalbox.SessionRequire && n.Session != signalbox.SessionPrefer:
		return signalbox.Invalid("session", "session must be require or prefer, not %q", n.Session)
	case n.Session != "" && n.SessionID == "":
		return signalbox.Invalid("session", "session says how firmly session_id is bound to its agent; give a session_id too")
	case n.Session != "" && n.Agent != "":
		return signalbox.Invalid("session", "session and agent exclude each other: a named agent is always required")
	case n.Priority < signalbox.MinPriority || n.Priority > signalbox.MaxPriority:
		return signalbox.Invalid("priority", "priority must be %d to %d, not %d", signalbox.MinPriority, signalbox.MaxPriority, n.Priority)
	}
	return nil
}

func (n *NewTask) checkTimes() error {
	switch {
	case n.TimeoutSeconds < 0 || n.TimeoutSeconds > MaxTimeoutSeconds:
		return signalbox.Invalid("timeout_seconds", "timeout_seconds must be 0 to %d, not %d", MaxTimeoutSeconds, n.TimeoutSeconds)
	case n.WaitTimeout < 0 || n.WaitTimeout > MaxWaitTimeout:
		return signalbox.Invalid("wait_timeout", "wait_timeout must be 0 to %d seconds", int(MaxWaitTimeout.Seconds()))
	}
	return nil
}

// envName is the form that agents accept, too.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// clip shortens caller input for error messages, at a rune boundary.
func clip(s string) string {
	if len(s) <= MaxWordBytes {
		return s
	}
	end := MaxWordBytes
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

func (n *NewTask) checkEnv() error {
	if len(n.Env) > MaxEnvEntries {
		return signalbox.Invalid("env", "env has %d entries; at most %d are allowed", len(n.Env), MaxEnvEntries)
	}
	size := 0
	for key, value := range n.Env {
		size += len(key) + len(value)
		if len(key) > 128 || !envName.MatchString(key) {
			return signalbox.Invalid("env", "env: %q cannot be the name of an environment variable: use 1 to 128 letters, digits or underscores, the first not a digit", clip(key))
		}
		if strings.ContainsRune(value, 0) {
			return signalbox.Invalid("env", "env: the value of %s contains a NUL character", key)
		}
	}
	if size > MaxEnvBytes {
		return signalbox.Invalid("env", "env has %d bytes; at most %d are allowed", size, MaxEnvBytes)
	}
	return nil
}

func (n *NewTask) checkKey() error {
	if len(n.IdempotencyKey) > signalbox.MaxIdempotencyBytes || !signalbox.Printable(n.IdempotencyKey) {
		return signalbox.Invalid("Idempotency-Key", "Idempotency-Key must be 1 to %d printable characters", signalbox.MaxIdempotencyBytes)
	}
	return nil
}
