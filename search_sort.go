package signalbox

import (
	"cmp"
	"strings"
	"time"
)

// Sort is an order of tasks by one key, such as duration, or -duration for the
// longest first. The keys are
//
//	created    when it was submitted
//	ended      when it ended
//	wait       from its submission to its start, to its end if it never started, or so far
//	duration   from its start to its end, or so far
//	priority   its priority
//	agent      that runs it, ran it, or is the only one that may take it
//
// Tasks without a value come last in either direction, for example a task that
// has not started when sorted by duration. The zero Sort is the order of a
// search: running, waiting, then ended tasks.
type Sort struct {
	Key        string
	Descending bool
}

// SortKeys are the keys of a Sort.
func SortKeys() []string {
	return []string{"created", "ended", "wait", "duration", "priority", "agent"}
}

// ParseSort parses a key, with a minus before it for descending order; "" is the
// zero Sort. Errors are CodeValidation for the field sort.
func ParseSort(text string) (Sort, error) {
	key, descending := strings.CutPrefix(text, "-")
	for _, known := range append(SortKeys(), "") {
		if key == known && (key != "" || !descending) {
			return Sort{key, descending}, nil
		}
	}
	return Sort{}, Invalid("sort", "%q is no order%s: use one of %s, with a minus before it for the largest first",
		short(text), didYouMean(key, SortKeys()), strings.Join(SortKeys(), ", "))
}

func (s Sort) String() string {
	if s.Descending {
		return "-" + s.Key
	}
	return s.Key
}

// SortValue is what a task is sorted by.
type SortValue struct {
	Missing bool   `json:"m,omitempty"`
	Number  int64  `json:"n,omitempty"` // Unix ms, ms, or a priority
	Text    string `json:"t,omitempty"`
	Seq     int64  `json:"s"` // Task.Seq: among equals the newest comes first
}

// Value returns what a task is sorted by; now is the end of durations that still run.
func (s Sort) Value(t *Task, now time.Time) SortValue {
	v := SortValue{Seq: t.Seq}
	started := t.StartedAt
	if t.State.Waiting() { // the row may keep times of an earlier claim
		started = time.Time{}
	}
	switch s.Key {
	case "created":
		v.Number = t.CreatedAt.UnixMilli()
	case "ended":
		v.Missing, v.Number = !t.State.Terminal(), t.EndedAt.UnixMilli()
	case "wait":
		v.Number = cmp.Or(started, t.EndedAt, now).Sub(t.CreatedAt).Milliseconds()
	case "duration":
		v.Missing, v.Number = started.IsZero(), cmp.Or(t.EndedAt, now).Sub(started).Milliseconds()
	case "priority":
		v.Number = int64(t.Priority)
	case "agent":
		if v.Text = t.Agent; t.State.Waiting() {
			v.Text, _ = OnlyAgent(t.Queue)
		}
		v.Missing = v.Text == ""
	}
	if v.Missing {
		v.Number = 0
	}
	return v
}

// Compare orders two values: negative if a comes before b.
func (s Sort) Compare(a, b SortValue) int {
	by := cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Text, b.Text))
	if s.Descending {
		by = -by
	}
	return cmp.Or(cmp.Compare(boolNumber(a.Missing), boolNumber(b.Missing)), by, cmp.Compare(b.Seq, a.Seq))
}
