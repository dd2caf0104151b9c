package signalbox

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// LandWish says where a task's work is to land, and how.
type LandWish struct {
	Onto        string // branch, or LandPR
	Method      string // rebase or squash; "": as the agent is configured
	FastForward bool   // a clean checkout of the branch is fast-forwarded too
}

// NewLandWish returns a wish, or nil if nothing is set.
func NewLandWish(onto, method string, fastForward bool) *LandWish {
	if w := (LandWish{onto, method, fastForward}); w != (LandWish{}) {
		return &w
	}
	return nil
}

// Said returns the wish; the zero LandWish for nil.
func (w *LandWish) Said() LandWish {
	if w == nil {
		return LandWish{}
	}
	return *w
}

// LandPR as LandWish.Onto means: push the branch and open a pull request.
const LandPR = "pr"

// Land names the work that a task lands.
type Land struct {
	LandWish
	Task      string // the task whose work lands
	SessionID string // that task's conversation; "": it has none
	Title     string // of a squashed commit or a pull request
}

// Landed is where work has landed, as reported by the agent.
type Landed struct {
	Onto    string `json:"onto"`
	Commit  string `json:"commit,omitempty"`
	Was     string `json:"was,omitempty"`
	Commits int    `json:"commits,omitempty"`
	Checked string `json:"checked,omitempty"` // passed or unavailable; "": there were no checks
	URL     string `json:"url,omitempty"`
}

// Sanitize replaces or drops what a correct agent never reports.
func (l *Landed) Sanitize() {
	l.Onto = printable(l.Onto, maxLandOnto)
	for _, hash := range []*string{&l.Commit, &l.Was} {
		if !commitForm.MatchString(*hash) {
			*hash = ""
		}
	}
	l.Commits = int(figure(int64(l.Commits)))
	if s := CheckState(l.Checked); s != CheckPassed && s != CheckUnavailable {
		l.Checked = ""
	}
	if u, err := url.Parse(l.URL); err != nil || len(l.URL) > 1000 || u.Scheme != "https" && u.Scheme != "http" || !Printable(l.URL) {
		l.URL = ""
	}
}

// Validate refuses a wish that no repository could fulfil. Errors name the field.
func (w *LandWish) Validate(field string) error {
	bad := func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) }
	onto := w.Onto
	if onto == "" || len(onto) > maxLandOnto || strings.ContainsFunc(onto, bad) || !Printable(onto) || onto[0] == '-' || strings.Contains(onto, "..") || strings.HasPrefix(onto, "refs/") {
		return Invalid(field, "%s must be the name of a branch, or %q for a pull request: 1 to %d bytes, not %q", field, LandPR, maxLandOnto, Clip(onto))
	}
	if w.Method != "" && w.Method != "rebase" && w.Method != "squash" {
		return Invalid("method", "method must be rebase or squash, not %q", Clip(w.Method))
	}
	return nil
}

// AdoptLanding converts the landing of a task that was imported from another director. An active
// landing becomes LandingStands until someone asks for it again, because the tasks that were to
// land it do not exist here.
//
// Errors: CodeValidation for a landing that no director can have exported.
func (t *Task) AdoptLanding(now time.Time) error {
	if t.Landing == nil {
		return nil
	}
	l := *t.Landing
	t.Landing = &l
	if err := l.Validate("landing"); err != nil {
		return err
	}
	known := slices.Contains(LandingStates(), l.State)
	if l.State == LandingWanted && t.State.Terminal() || l.State != LandingWanted && l.State != LandingDropped && t.State != Completed {
		known = false
	}
	if !known || l.LandTask != "" && !ValidID(l.LandTask) || l.Turn != "" && !ValidID(l.Turn) {
		return Invalid("landing", "a task that is %s has no landing that is %q by the task %q", t.State, Clip(string(l.State)), Clip(cmp.Or(l.LandTask, l.Turn)))
	}
	got := Landed{Commit: l.Commit, Was: l.Was, URL: l.URL}
	got.Sanitize()
	l.Commit, l.Was, l.URL = got.Commit, got.Was, got.URL
	l.Text, l.By = printable(l.Text, MaxLandingText), printable(l.By, maxLandOnto)
	for _, at := range []*time.Time{&l.At, &l.Since} {
		if at.IsZero() || at.After(now) {
			*at = now
		}
	}
	if l.Active() {
		l.State, l.Since, l.Text = LandingStands, now, "its landing was active when it was exported: ask for it again with signalbox land "+t.ID
	}
	return nil
}
