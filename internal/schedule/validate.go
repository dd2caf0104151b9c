package schedule

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// Limits of what a schedule says; those of its task are those of any task.
const (
	MaxDescriptionBytes = 4096
	MinMissedWindow     = time.Minute
	MaxMissedWindow     = 366 * 24 * time.Hour
)

// withDefaults fills in what is not given.
func withDefaults(s signalbox.Schedule) signalbox.Schedule {
	if s.Overlap == "" {
		s.Overlap = signalbox.OverlapQueue
	}
	if s.Missed == "" {
		s.Missed = signalbox.MissedOnce
	}
	if s.MissedWindow == 0 {
		s.MissedWindow = signalbox.DefaultMissedWindow
	}
	if s.OnFull == "" {
		s.OnFull = signalbox.FullSkip
	}
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	return s
}

// Validate refuses a schedule that cannot be. The error names the field as the
// API has it. Empty choices are those of the default.
func Validate(s signalbox.Schedule) error {
	s = withDefaults(s)
	for _, check := range []func(*signalbox.Schedule) error{checkName, checkTimes, checkPrompt, checkWords, checkRoute, checkChoices} {
		if err := check(&s); err != nil {
			return err
		}
	}
	return nil
}

const nameRule = "use 1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit"

func checkName(s *signalbox.Schedule) error {
	switch {
	case s.Name == "":
		return signalbox.Invalid("name", "name is required: %s", nameRule)
	case !signalbox.ValidName(s.Name):
		return signalbox.Invalid("name", "%q cannot be the name of a schedule: %s", clip(s.Name), nameRule)
	case len(s.Name) == len(idPrefix)+16 && strings.HasPrefix(s.Name, idPrefix):
		return signalbox.Invalid("name", "%q looks like the id of a schedule: choose a name that does not", s.Name)
	case len(s.Description) > MaxDescriptionBytes || !readable(s.Description):
		return signalbox.Invalid("description", "description must be text of at most %d bytes", MaxDescriptionBytes)
	}
	return nil
}

func checkTimes(s *signalbox.Schedule) error {
	var refused *cron.Error
	if _, err := cron.Parse(s.Cron); errors.As(err, &refused) {
		return signalbox.Invalid("cron_expression", "%s", refused.Text)
	}
	if _, err := cron.Zone(s.Timezone); errors.As(err, &refused) {
		return signalbox.Invalid("timezone", "%s", refused.Text)
	}
	return nil
}

func checkPrompt(s *signalbox.Schedule) error { return signalbox.CheckPrompt(s.Prompt) }

func checkWords(s *signalbox.Schedule) error {
	return signalbox.CheckWords(s.Model, s.Tier, s.Project)
}

func checkRoute(s *signalbox.Schedule) error {
	if kind, own := signalbox.ExecutorKind(s.Agent); own {
		return signalbox.Invalid("agent", "agent %s runs %s of the director itself and takes no prompts: name another agent", clip(s.Agent), kind)
	}
	switch {
	case s.Agent != "" && s.Kind != "":
		return signalbox.Invalid("kind", "agent and kind exclude each other: an agent has one kind")
	case s.Agent != "" && !signalbox.ValidName(s.Agent):
		return signalbox.Invalid("agent", "%q cannot be the name of an agent: %s", clip(s.Agent), nameRule)
	case s.Kind != "" && !signalbox.ValidName(s.Kind):
		return signalbox.Invalid("kind", "%q cannot be a kind of agent: %s", clip(s.Kind), nameRule)
	case s.SessionID != "" && !signalbox.ValidSessionID(s.SessionID):
		return signalbox.Invalid("session_id", "session_id must be 1 to 128 letters, digits, dots, underscores or hyphens, begin with a letter or digit and not contain \"..\"")
	}
	return nil
}

func checkChoices(s *signalbox.Schedule) error {
	switch {
	case s.Priority < signalbox.MinPriority || s.Priority > signalbox.MaxPriority:
		return signalbox.Invalid("priority", "priority must be %d to %d, not %d", signalbox.MinPriority, signalbox.MaxPriority, s.Priority)
	case s.TimeoutSeconds < 0 || s.TimeoutSeconds > signalbox.MaxTimeoutSeconds:
		return signalbox.Invalid("timeout_seconds", "timeout_seconds must be 0 to %d, not %d", signalbox.MaxTimeoutSeconds, s.TimeoutSeconds)
	case s.OnLost != "" && s.OnLost != signalbox.LostFail && s.OnLost != signalbox.LostRequeue:
		return signalbox.Invalid("on_lost", "on_lost must be fail or requeue, not %q", clip(string(s.OnLost)))
	case !slices.Contains(signalbox.Overlaps(), s.Overlap):
		return signalbox.Invalid("overlap", "overlap must be one of %v, not %q", signalbox.Overlaps(), clip(string(s.Overlap)))
	case !slices.Contains(signalbox.MissedPolicies(), s.Missed):
		return signalbox.Invalid("missed", "missed must be one of %v, not %q", signalbox.MissedPolicies(), clip(string(s.Missed)))
	case s.MissedWindow < MinMissedWindow || s.MissedWindow > MaxMissedWindow:
		return signalbox.Invalid("missed_window_seconds", "missed_window_seconds must be %d to %d, not %d",
			int64(MinMissedWindow.Seconds()), int64(MaxMissedWindow.Seconds()), int64(s.MissedWindow.Seconds()))
	case !slices.Contains(signalbox.OnFulls(), s.OnFull):
		return signalbox.Invalid("on_full", "on_full must be one of %v, not %q", signalbox.OnFulls(), clip(string(s.OnFull)))
	}
	return nil
}

// readable is printable text that may have several lines.
func readable(s string) bool {
	return signalbox.Printable(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(s))
}

// clip cuts what was sent for an error to show.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "..."
	}
	return s
}
