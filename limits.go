package signalbox

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a request, from a submit or a schedule.
const (
	MaxPromptBytes    = 1 << 20
	MaxTimeoutSeconds = 7 * 24 * 3600
	MaxWordBytes      = 200  // model, tier, project name
	MaxPathBytes      = 4096 // a working directory
)

// Printable reports whether s is UTF-8 on one line without control characters.
func Printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) })
}

// CheckPrompt refuses a prompt that is empty, too long, not UTF-8 or contains a NUL character.
func CheckPrompt(prompt string) error {
	switch {
	case strings.TrimSpace(prompt) == "":
		return Invalid("prompt", "prompt is required")
	case len(prompt) > MaxPromptBytes:
		return &Error{Code: CodeTooLarge, Field: "prompt",
			Message: fmt.Sprintf("prompt has %d bytes; at most %d are allowed", len(prompt), MaxPromptBytes)}
	case !utf8.ValidString(prompt):
		return Invalid("prompt", "prompt is not valid UTF-8")
	case strings.ContainsRune(prompt, 0):
		return Invalid("prompt", "prompt contains a NUL character, which no command line can carry")
	}
	return nil
}

// CheckWords refuses a model, tier or project that could be misread on a command line, such as
// an option.
func CheckWords(model, tier string, project *Project) error {
	words := [][2]string{{"model", model}, {"tier", tier}}
	if project != nil {
		words = append(words, [2]string{"project.name", project.Name})
		if len(project.Path) > MaxPathBytes || !Printable(project.Path) {
			return Invalid("project.path", "project.path must be printable and at most %d bytes", MaxPathBytes)
		}
	}
	for _, w := range words {
		if len(w[1]) > MaxWordBytes || !Printable(w[1]) || strings.HasPrefix(w[1], "-") {
			return Invalid(w[0], "%s must be printable, at most %d bytes, and not begin with a hyphen", w[0], MaxWordBytes)
		}
	}
	return nil
}

// CheckTarget refuses an agent, kind or session that is not valid; each may be "".
func CheckTarget(agent, kind, sessionID string) error {
	switch {
	case agent != "" && kind != "":
		return Invalid("kind", "agent and kind exclude each other: an agent has one kind")
	case agent != "" && !ValidName(agent):
		return CheckName("agent", "the name of an agent", agent)
	case kind != "" && !ValidName(kind):
		return CheckName("kind", "a kind of agent", kind)
	case sessionID != "" && !ValidSessionID(sessionID):
		return Invalid("session_id", "session_id must be 1 to 128 letters, digits, dots, underscores or hyphens, begin with a letter or digit and not contain \"..\"")
	}
	return nil
}

// NameRule is the rule of ValidName, for messages.
const NameRule = "use 1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit"

// CheckName refuses a name that is not valid. what describes the name in the message.
func CheckName(field, what, name string) error {
	if ValidName(name) {
		return nil
	}
	return Invalid(field, "%q cannot be %s: %s", Clip(name), what, NameRule)
}

// CheckText refuses a text that is longer than most bytes or not printable.
func CheckText(field, text string, most int) error {
	if len(text) <= most && Printable(text) {
		return nil
	}
	return Invalid(field, "%s must be printable and at most %d bytes", field, most)
}

// CheckRange refuses a number below least or above most.
func CheckRange(field string, n, least, most int) error {
	if n >= least && n <= most {
		return nil
	}
	return Invalid(field, "%s must be %d to %d, not %d", field, least, most, n)
}

// CheckChoice refuses a value that is neither "" nor one of choices.
func CheckChoice[S ~string](field string, value S, choices ...S) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	last := len(choices) - 1
	list := strings.Trim(fmt.Sprint(slices.Clone(choices[:last])), "[]") // Clone: choices stay on the caller's stack
	return Invalid(field, "%s must be %s or %s, not %q", field, strings.ReplaceAll(list, " ", ", "), choices[last], Clip(string(value)))
}

// Clip shortens a caller's text for an error message, at a rune boundary.
func Clip(s string) string {
	if len(s) <= MaxWordBytes {
		return s
	}
	return clip(s, MaxWordBytes) + "..."
}

// StallByProgress is a stall limit that depends on the agent. If the agent reports progress,
// the limit is the slot lease (execution_ttl). Otherwise it is one hour, or none for a run
// with a timeout.
const StallByProgress time.Duration = -1
