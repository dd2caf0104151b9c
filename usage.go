package signalbox

import (
	"fmt"
	"math"
	"time"
)

// Spent is the model usage of runs.
type Spent struct {
	InputTokens  int64
	OutputTokens int64
	NanoUSD      int64 // billionths of a US dollar, so that sums are exact
}

// Bounds on what one run may report. Larger values are counted as the bound.
const (
	MaxRunTokens = 1_000_000_000_000 // in each direction
	MaxRunUSD    = 1_000_000

	maxRunSeconds = 1e9
)

// MaxModel is the maximum length of a stored model name, in bytes.
const MaxModel = 100

const nanoPerUSD = 1e9

// Spent returns what the run reported, clamped to 0 and the bounds.
func (r *Result) Spent() Spent {
	s := Spent{InputTokens: between(r.InputTokens, MaxRunTokens), OutputTokens: between(r.OutputTokens, MaxRunTokens)}
	if r.CostUSD > 0 { // false for NaN
		s.NanoUSD = int64(math.Round(min(r.CostUSD, MaxRunUSD) * nanoPerUSD))
	}
	return s
}

func between(n, most int64) int64 { return min(max(0, n), most) }

// Plus returns the sum, saturated at the largest number.
func (s Spent) Plus(o Spent) Spent {
	return Spent{plus(s.InputTokens, o.InputTokens), plus(s.OutputTokens, o.OutputTokens), plus(s.NanoUSD, o.NanoUSD)}
}

// Beyond returns by how much s exceeds o; each figure is at least 0.
func (s Spent) Beyond(o Spent) Spent {
	return Spent{max(0, s.InputTokens-o.InputTokens), max(0, s.OutputTokens-o.OutputTokens), max(0, s.NanoUSD-o.NanoUSD)}
}

func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Tokens returns the sum of input and output tokens.
func (s Spent) Tokens() int64 { return plus(s.InputTokens, s.OutputTokens) }

// USD returns the cost in US dollars.
func (s Spent) USD() float64 { return float64(s.NanoUSD) / nanoPerUSD }

// Day is a day in UTC, as days since 1970-01-01.
type Day int64

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day(math.Floor(float64(t.Unix()) / (24 * 3600))) }

// Start returns when the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*24*3600, 0).UTC() }

// String returns the day as 2006-01-02.
func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// ParseDay parses what String returns.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is no day: write it as 2006-01-02", s)
	}
	return DayOf(t), nil
}

// UsageKey identifies the runs that a row of Usage sums up.
type UsageKey struct {
	Day      Day    // on which the runs ended, or their late reports arrived
	Agent    string // that ran them
	Schedule string // Task.SourceJob of a scheduled task; "" for others
	Owner    string // Task.Owner
	Model    string // as the agent reported it; "" if it did not
}

// Usage sums up the runs that reported tokens or costs. It does not count runs
// that reported neither.
type Usage struct {
	UsageKey
	Email  string // of the owner
	Runs   int64  // a task that was run twice has two
	Failed int64  // runs that did not complete; a cancelled run has not failed
	RunMS  int64  // their duration, as measured by their agents
	Spent
}

// UsageDays is for how many days usage is kept.
const UsageDays = 400

// UsageRows limits the rows of a day. Beyond it, runs that need a new row are summed up
// only by agent and owner; beyond twice as many, in one row.
const UsageRows = 1000

// OtherUsage replaces a name in a UsageKey whose runs have no row of their own. No
// agent, schedule or owner has that name.
const OtherUsage = "(other)"

// Fold returns the key under which a new row is stored on a day that already has
// that many rows.
func (k UsageKey) Fold(rows int64) UsageKey {
	switch {
	case rows < UsageRows:
		return k
	case rows < 2*UsageRows:
		return UsageKey{Day: k.Day, Agent: k.Agent, Schedule: OtherUsage, Owner: k.Owner, Model: OtherUsage}
	}
	return UsageKey{Day: k.Day, Agent: OtherUsage, Schedule: OtherUsage, Owner: OtherUsage, Model: OtherUsage}
}

// Used returns what a run of the task adds to the usage of the day on which it ended.
// Runs is 0 if the run reported nothing.
func (t *Task) Used(at time.Time, agent string, r *Result, failed bool) Usage {
	u := Usage{UsageKey: UsageKey{Day: DayOf(at), Agent: agent, Owner: t.Owner, Model: r.Model}, Email: t.OwnerEmail, Spent: r.Spent()}
	if u.Spent == (Spent{}) {
		return Usage{}
	}
	if t.Source == SourceScheduler {
		u.Schedule = t.SourceJob
	}
	u.Runs = 1
	if r.DurationSeconds > 0 {
		u.RunMS = int64(min(r.DurationSeconds, maxRunSeconds) * 1000)
	}
	if failed {
		u.Failed = 1
	}
	return u
}

// Plus returns the sum of two rows, under the key of u.
func (u Usage) Plus(o Usage) Usage {
	u.Runs, u.Failed, u.RunMS, u.Spent = plus(u.Runs, o.Runs), plus(u.Failed, o.Failed), plus(u.RunMS, o.RunMS), u.Spent.Plus(o.Spent)
	if o.Email != "" {
		u.Email = o.Email
	}
	return u
}

// Used returns what the change adds to the usage; Runs is 0 if it adds nothing.
func (c *Change) Used() Usage {
	if c.Result == nil {
		return Usage{}
	}
	failed := c.Task.State == Failed || c.Task.State == Timeout || c.Task.State == Pending
	return c.Task.Used(c.Entry.At, c.Task.Agent, c.Result, failed)
}

// Used returns what a void run adds to the usage beyond what was already counted for
// it; Runs is 0 if it adds no run.
func (s *Stale) Used(t *Task, before *Stale) Usage {
	u := t.Used(s.At, s.Agent, &s.Result, s.State != string(Completed) && s.State != string(Cancelled))
	if u.Runs == 0 {
		return u
	}
	var counted Spent
	switch {
	case before != nil:
		counted = before.Result.Spent()
	case t.Fence == s.Fence && t.Requeues == nil && t.Parking == nil: // its only run was lost, and what it reported until then was counted
		counted = t.Spent
	}
	if counted != (Spent{}) {
		u.Runs, u.Failed, u.RunMS, u.Spent = 0, 0, 0, u.Spent.Beyond(counted)
	}
	return u
}
