package signalbox

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what is asked for, by a submit or a schedule.
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

// CheckPrompt refuses what no agent could be told.
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

// CheckWords refuses a model, tier or project that a command line could take
// for something else.
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

// StallByProgress as the stall limit bounds the time without progress of a run by
// the slot lease (execution_ttl) where its agent reports progress. Elsewhere an hour
// is the bound, and of a run that has a timeout that alone.
const StallByProgress time.Duration = -1
