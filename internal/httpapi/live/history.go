package live

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	loadEvery = 10 * time.Second // from one sample to the next
	loadFor   = 30 * time.Minute // that samples are kept
)

// pressureLog keeps how much there was to do, in memory: it begins anew with the
// process.
type pressureLog struct {
	samples []api.Pressure // oldest first; a new slice with each sample, for changes have the old one
}

// sample takes a sample where one is due, and returns all.
func (p *pressureLog) sample(t *api.Totals, now time.Time) []api.Pressure {
	if n := len(p.samples); n > 0 {
		age := now.Sub(p.samples[n-1].At)
		if age >= 0 && age < loadEvery {
			return p.samples
		}
		if age < 0 { // the clock went back
			p.samples = nil
		}
	}
	oldest := 0
	for oldest < len(p.samples) && now.Sub(p.samples[oldest].At) > loadFor {
		oldest++
	}
	p.samples = append(append([]api.Pressure(nil), p.samples[oldest:]...), api.Pressure{
		At: now, Running: t.Running, Pending: t.Pending, OldestAgeSeconds: t.OldestAgeSeconds,
	})
	return p.samples
}

const (
	tallyMinutes = 24 * 60
	// seedRows and seedTime bound what is read of the past at the first look.
	seedRows = 20_000
	seedTime = 500 * time.Millisecond
	// seedOverlap is how long before the first look a task may have ended that is
	// in the journal only behind it: its end was decided before it was stored.
	seedOverlap = 30 * time.Second
)

// tally counts the tasks that ended in the last 24 hours, by minutes, from the
// journal, which has those of all directors. What ended before the first look
// is read from the history, as far as that is done quickly.
type tally struct {
	minutes [tallyMinutes]minute
	counted map[string]time.Time // of the overlap: tasks that were counted
	since   time.Time            // from when on all are counted, where that is less than 24 hours
	upTo    int64                // seq of the last entry of the journal that was counted
}

type minute struct {
	number       int64 // since 1970
	done, failed int
}

func (t *tally) add(state signalbox.State, at time.Time) {
	number := at.Unix() / 60
	m := &t.minutes[((number%tallyMinutes)+tallyMinutes)%tallyMinutes]
	if m.number != number {
		if m.number > number {
			return // older than 24 hours
		}
		*m = minute{number: number}
	}
	switch state {
	case signalbox.Completed:
		m.done++
	case signalbox.Failed, signalbox.Timeout:
		m.failed++
	}
}

// entry counts an end that the journal tells of.
func (t *tally) entry(e *signalbox.Entry) {
	if e.Seq <= t.upTo {
		return // a look failed after it was read
	}
	t.upTo = e.Seq
	if !e.State.Terminal() || e.Queue == signalbox.QueueCommands || e.Queue == signalbox.QueueCalls {
		return
	}
	if _, known := t.counted[e.QueueID]; known {
		delete(t.counted, e.QueueID)
		return
	}
	t.add(e.State, e.At)
}

// seed counts what ended before the first look.
func (t *tally) seed(ctx context.Context, read store.Reader, now time.Time, entry int64) error {
	*t = tally{counted: map[string]time.Time{}, upTo: entry}
	q := store.HistoryQuery{Since: now.Add(-tallyMinutes * time.Minute), Limit: 1000}
	begin := time.Now()
	for rows := 0; ; {
		page, err := read.History(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			row := &page.Tasks[i]
			if rows++; row.Mode == signalbox.ModeTool {
				continue
			}
			t.add(row.State, row.EndedAt)
			if now.Sub(row.EndedAt) < seedOverlap {
				t.counted[row.ID] = row.EndedAt
			}
		}
		if page.Next == "" {
			return nil
		}
		if n := len(page.Tasks); rows >= seedRows || time.Since(begin) > seedTime {
			t.since = now
			if n > 0 {
				t.since = page.Tasks[n-1].EndedAt
			}
			return nil
		}
		q.Before = page.Next
	}
}

// into writes the figures of the 24 hours until now.
func (t *tally) into(out *api.Totals, now time.Time) {
	for id, at := range t.counted {
		if now.Sub(at) > 2*seedOverlap {
			delete(t.counted, id)
		}
	}
	oldest := now.Unix()/60 - tallyMinutes
	for i := range t.minutes {
		if m := &t.minutes[i]; m.number > oldest {
			out.Done24h += m.done
			out.Failed24h += m.failed
		}
	}
	if !t.since.IsZero() && now.Sub(t.since) < tallyMinutes*time.Minute {
		out.EndedSince = t.since.UnixMilli()
	}
}

// changes are what the journal tells between two looks.
type changes struct {
	wanted    bool            // which tasks changed; else only how many ended
	order     []string        // ids of tasks that changed, in order
	ids       map[string]bool // the same
	schedules map[string]bool // by name
	agents    map[string]bool // that no task's entry names
	members   bool            // an agent was added, changed or removed
	tooMuch   bool            // more changed than is told one by one
}

const (
	maxMoved     = 500  // tasks that are told one by one in one change
	journalBatch = 1000 // entries that are read at once
)

// read reads the journal from one look to the next.
func (b *builder) read(ctx context.Context, after, to int64, into *changes) error {
	for after < to {
		entries, err := b.cfg.Engine.Read().Journal(ctx, after, journalBatch)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		for i := range entries {
			entry := &entries[i]
			if entry.Seq > to {
				return nil
			}
			if entry.Seq != after+1 { // entries were pruned before they were read
				into.tooMuch = true
			}
			after = entry.Seq
			b.tally.entry(entry)
			into.add(entry)
		}
	}
	return nil
}

func (c *changes) add(e *signalbox.Entry) {
	switch {
	case e.Kind == signalbox.EventAgentAdded || e.Kind == signalbox.EventAgentRemoved:
		c.members, c.agents[e.Agent] = true, true
	case e.QueueID == "" && e.Agent != "":
		c.agents[e.Agent] = true
	case e.Schedule != "" && (e.Kind == signalbox.EventScheduleChanged || e.Kind == signalbox.EventScheduleFired):
		c.schedules[e.Schedule] = true
	}
	if !c.wanted || e.QueueID == "" || c.ids[e.QueueID] {
		return
	}
	if len(c.order) == maxMoved {
		c.tooMuch = true
		return
	}
	c.ids[e.QueueID] = true
	c.order = append(c.order, e.QueueID)
}
