package top

import (
	"charm.land/lipgloss/v2"
)

// styles are the colours of the view. None says anything that a word or sign
// beside it does not say too.
type styles struct {
	bold, dim, good, busy, warn, bad, pick lipgloss.Style
}

// newStyles makes colours that can be read on a dark or a light background.
func newStyles(dark bool) styles {
	pick := lipgloss.LightDark(dark)
	colour := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return styles{
		bold: lipgloss.NewStyle().Bold(true),
		dim:  colour("#5f6670", "#9aa2ad"),
		good: colour("#1a7f37", "#56d364"),
		busy: colour("#1f5fbf", "#79b8ff"),
		warn: colour("#8a5a00", "#e3b341"),
		bad:  colour("#b3261e", "#ff8a80"),
		pick: lipgloss.NewStyle().Reverse(true),
	}
}

// look is how a state or face shows: a sign and its colour beside the word.
type look struct {
	sign  string
	style lipgloss.Style
}

func (s *styles) face(face string) look {
	switch face {
	case "idle":
		return look{"○", s.good}
	case "running":
		return look{"●", s.busy}
	case "waiting for capacity":
		return look{"◐", s.warn}
	case "cancelling", "withheld":
		return look{"◌", s.warn}
	case "paused", "draining":
		return look{"‖", s.warn}
	case "stuck":
		return look{"▲", s.bad}
	case "down", "closed":
		return look{"✗", s.bad}
	}
	return look{"·", s.dim}
}

func (s *styles) state(state string) look {
	switch state {
	case "pending":
		return look{"○", s.dim}
	case "dispatching":
		return look{"◌", s.busy}
	case "working":
		return look{"●", s.busy}
	case "cancelling":
		return look{"◌", s.warn}
	case "completed":
		return look{"✓", s.good}
	case "failed", "timeout":
		return look{"✗", s.bad}
	case "cancelled":
		return look{"–", s.warn}
	}
	return look{"·", s.dim}
}
