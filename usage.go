package signalbox

import (
	"fmt"
	"math"
	"time"
)

// Spent is what runs used of their models.
type Spent struct {
	InputTokens  int64
	OutputTokens int64
	NanoUSD      int64 // billionths of a US dollar, so that sums are exact
}

// Bounds on what one run may report: more is counted as that much.
const (
	MaxRunTokens = 1_000_000_000_000 // of each direction
	MaxRunUSD    = 1_000_000

	maxRunSeconds = 1e9
)

// MaxModel bounds the name of a model that is kept, in bytes.
const MaxModel = 100

const nanoPerUSD = 1e9

// Spent returns what the run reported, between 0 and the bounds.
func (r *Result) Spent() Spent {
	s := Spent{InputTokens: between(r.InputTokens, MaxRunTokens), OutputTokens: between(r.OutputTokens, MaxRunTokens)}
	if r.CostUSD > 0 { // not if it is no number
		s.NanoUSD = int64(math.Round(min(r.CostUSD, MaxRunUSD) * nanoPerUSD))
	}
	return s
}

func between(n, most int64) int64 { return min(max(0, n), most) }

// Plus returns the sum. What does not fit stays at the largest number.
func (s Spent) Plus(o Spent) Spent {
	return Spent{plus(s.InputTokens, o.InputTokens), plus(s.OutputTokens, o.OutputTokens), plus(s.NanoUSD, o.NanoUSD)}
}

// Beyond returns by how much s exceeds o, in each figure at least 0.
func (s Spent) Beyond(o Spent) Spent {
	return Spent{max(0, s.InputTokens-o.InputTokens), max(0, s.OutputTokens-o.OutputTokens), max(0, s.NanoUSD-o.NanoUSD)}
}

func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Tokens returns those of both directions.
func (s Spent) Tokens() int64 { return plus(s.InputTokens, s.OutputTokens) }

// USD returns the money in US dollars.
func (s Spent) USD() float64 { return float64(s.NanoUSD) / nanoPerUSD }

// Day is a day in UTC, as days since 1970-01-01.
type Day int64

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day(math.Floor(float64(t.Unix()) / (24 * 3600))) }

// Start returns when the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*24*3600, 0).UTC() }

// String returns the day as 2006-01-02.
func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// ParseDay reads what String returns.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is no day: write it as 2006-01-02", s)
	}
	return DayOf(t), nil
}

// UsageKey says what a row of Usage is the sum of.
type UsageKey struct {
	Day      Day    // on which the runs ended, or their late reports came
	Agent    string // that ran them
	Schedule string // Task.SourceJob of a scheduler's task; "" for others
	Owner    string // Task.Owner
	Model    string // as the agent said it; "" where it did not
}

// Usage sums up the runs that reported tokens or costs. Runs that reported
// neither are not in it.
type Usage struct {
	UsageKey
	Email  string // of the owner
	Runs   int64  // a task that was run twice has two
	Failed int64  // those of them that did not complete; a cancelled run has not failed
	RunMS  int64  // how long they took, as their agents measured it
	Spent
}

// UsageDays is how many days usage is kept.
const UsageDays = 400

// Bounds on the rows of a day. Beyond UsageRows, what would need a new row is
// summed up by agent and owner alone; beyond twice as many, in one row.
const UsageRows = 1000

// OtherUsage stands in a UsageKey for what has no row of its own. No agent,
// schedule or owner has that name.
const OtherUsage = "(other)"

// Fold returns the key under which a new row is stored on a day that has rows
// already.
func (k UsageKey) Fold(rows int64) UsageKey {
	switch {
	case rows < UsageRows:
		return k
	case rows < 2*UsageRows:
		return UsageKey{Day: k.Day, Agent: k.Agent, Schedule: OtherUsage, Owner: k.Owner, Model: OtherUsage}
	}
	return UsageKey{Day: k.Day, Agent: OtherUsage, Schedule: OtherUsage, Owner: OtherUsage, Model: OtherUsage}
}

// Used returns what a run of the task adds to the sums, at the time it ended;
// Runs is 0 where it reported nothing.
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

// Used returns what the change adds to the sums; Runs is 0 where that is nothing.
func (c *Change) Used() Usage {
	if c.Result == nil {
		return Usage{}
	}
	failed := c.Task.State == Failed || c.Task.State == Timeout || c.Task.State == Pending
	return c.Task.Used(c.Entry.At, c.Task.Agent, c.Result, failed)
}

// Used returns what a void run adds to the sums beyond what was counted of it
// before; Runs is 0 where that is nothing.
func (s *Stale) Used(t *Task, before *Stale) Usage {
	u := t.Used(s.At, s.Agent, &s.Result, s.State != string(Completed) && s.State != string(Cancelled))
	if u.Runs == 0 {
		return u
	}
	var counted Spent
	switch {
	case before != nil:
		counted = before.Result.Spent()
	case t.Fence == s.Fence && t.Requeues == nil && t.Parking == nil: // when its only run was lost, what was heard of it was
		counted = t.Spent
	}
	if counted != (Spent{}) {
		u.Runs, u.Failed, u.RunMS, u.Spent = 0, 0, 0, u.Spent.Beyond(counted)
	}
	return u
}
