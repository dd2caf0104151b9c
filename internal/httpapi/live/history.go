package live

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	pressureEvery = 10 * time.Second // between two samples
	pressureKept  = 30 * time.Minute // how long a sample is kept
)

// pressureLog samples the load. The samples are only in memory and start empty.
type pressureLog struct {
	samples []api.Pressure // oldest first; replaced, never changed in place: states share it
}

// sample adds a sample if one is due, and returns all of them.
func (p *pressureLog) sample(t *api.Totals, now time.Time) []api.Pressure {
	if n := len(p.samples); n > 0 {
		age := now.Sub(p.samples[n-1].At)
		if age >= 0 && age < pressureEvery {
			return p.samples
		}
		if age < 0 { // the clock was set back
			p.samples = nil
		}
	}
	oldest := 0
	for oldest < len(p.samples) && now.Sub(p.samples[oldest].At) > pressureKept {
		oldest++
	}
	p.samples = append(append([]api.Pressure(nil), p.samples[oldest:]...), api.Pressure{
		At: now, Running: t.Running, Pending: t.Pending, OldestAgeSeconds: t.OldestAgeSeconds,
	})
	return p.samples
}

const (
	tallyMinutes = 24 * 60
	// seedRows and seedTime limit how much history the first refresh reads.
	seedRows = 20_000
	seedTime = 500 * time.Millisecond
	// seedOverlap is how long before the first refresh a task may have ended if its
	// journal entry comes after it: the end time is set before the commit.
	seedOverlap = 30 * time.Second
)

// tally counts the tasks that ended in the last 24 hours, without tool calls, in
// buckets of a minute. It follows the journal, which covers all directors. Tasks that
// ended before the first refresh come from the history, within seedRows and seedTime.
type tally struct {
	minutes [tallyMinutes]minute // a ring, by minute number modulo its length
	seeded  map[string]time.Time // end times of the tasks counted by seed within seedOverlap, by id
	// completeSince is the time since which all tasks are counted; zero: 24 hours.
	completeSince time.Time
	lastSeq       int64 // newest counted journal entry
}

type minute struct {
	number       int64 // minutes since 1970
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

// addEntry counts a journal entry that ends a task. It skips entries that an earlier,
// failed refresh has counted already.
func (t *tally) addEntry(e *signalbox.Entry) {
	if e.Seq <= t.lastSeq {
		return
	}
	t.lastSeq = e.Seq
	if !e.State.Terminal() || e.Queue == signalbox.QueueCommands || e.Queue == signalbox.QueueCalls {
		return
	}
	if _, counted := t.seeded[e.QueueID]; counted {
		delete(t.seeded, e.QueueID)
		return
	}
	t.add(e.State, e.At)
}

// seed initializes the tally and the failures from the history. lastSeq is the newest journal
// entry of the refresh's snapshot.
func (r *refresh) seed(lastSeq int64) error {
	var ended []signalbox.Task // for the failures
	read := r.cfg.Engine.Read()
	err := r.tally.seed(r.ctx, read, r.now, lastSeq, func(t *signalbox.Task) {
		if t.SourceJob != "" || t.Cause != "" && r.now.Sub(t.EndedAt) < failuresKept || t.RetryOf != "" {
			ended = append(ended, *t)
		}
	})
	if err != nil {
		return err
	}
	r.failures = newFailures()
	return r.failures.seed(r.ctx, read, ended, r.snapshot.InFlight, r.now)
}

// seed initializes the tally from the history, and passes each task to then.
func (t *tally) seed(ctx context.Context, read store.Reader, now time.Time, lastSeq int64, then func(*signalbox.Task)) error {
	*t = tally{seeded: map[string]time.Time{}, lastSeq: lastSeq}
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
			then(row)
			if now.Sub(row.EndedAt) < seedOverlap {
				t.seeded[row.ID] = row.EndedAt
			}
		}
		if page.Next == "" {
			return nil
		}
		if n := len(page.Tasks); rows >= seedRows || time.Since(begin) > seedTime {
			t.completeSince = now
			if n > 0 {
				t.completeSince = page.Tasks[n-1].EndedAt
			}
			return nil
		}
		q.Before = page.Next
	}
}

// addTo sets the counts of the 24 hours before now.
func (t *tally) addTo(out *api.Totals, now time.Time) {
	for id, at := range t.seeded {
		if now.Sub(at) > 2*seedOverlap {
			delete(t.seeded, id)
		}
	}
	oldest := now.Unix()/60 - tallyMinutes
	for i := range t.minutes {
		if m := &t.minutes[i]; m.number > oldest {
			out.Done24h += m.done
			out.Failed24h += m.failed
		}
	}
	if !t.completeSince.IsZero() && now.Sub(t.completeSince) < tallyMinutes*time.Minute {
		out.EndedSince = t.completeSince.UnixMilli()
	}
}

// journalChanges is what has changed according to the journal between two snapshots.
type journalChanges struct {
	collectTasks  bool            // false: taskIDs stays empty, entries only go into the tally
	taskIDs       []string        // tasks that changed, in the order of their first entry
	seenTasks     map[string]bool // the ids in taskIDs
	ended         []string        // tasks whose end matters to the failures
	schedules     map[string]bool // schedules that fired or changed, by name
	agents        map[string]bool // agents in entries that belong to no task
	agentsChanged bool            // an agent was added, changed or removed
	accounts      bool            // an account changed
	parked        bool            // the set of parked tasks may have changed
	landings      bool            // the set of landings may have changed
	incomplete    bool            // entries are missing, or more than maxChangedTasks tasks changed
}

const (
	maxChangedTasks = 500  // in one delta; if more change, readers get a new snapshot
	journalBatch    = 1000 // entries read at once
)

// readJournal adds the entries after seq after, up to and including seq to, to the tally
// and to the changes.
func (b *builder) readJournal(ctx context.Context, after, to int64, into *journalChanges) error {
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
				into.incomplete = true
			}
			after = entry.Seq
			b.tally.addEntry(entry)
			if entry.Kind == signalbox.EventSubmit {
				b.failures.submitted(entry.RetryOf, entry.At)
			}
			if b.failures.wants(entry) && len(into.ended) < maxEndsRead {
				into.ended = append(into.ended, entry.QueueID)
			}
			into.parked = into.parked || b.gates.about(entry)
			into.add(entry)
		}
	}
	return nil
}

func (c *journalChanges) add(e *signalbox.Entry) {
	switch {
	case e.Kind == signalbox.EventAgentAdded || e.Kind == signalbox.EventAgentRemoved:
		c.agentsChanged, c.agents[e.Agent] = true, true
	case e.Kind == signalbox.EventAccount:
		c.accounts = true
	case e.Kind == signalbox.EventLanding || e.Kind == signalbox.EventRestored:
		c.landings = true
	case e.QueueID == "" && e.Agent != "":
		c.agents[e.Agent] = true
	case e.Schedule != "" && (e.Kind == signalbox.EventScheduleChanged || e.Kind == signalbox.EventScheduleFired):
		c.schedules[e.Schedule] = true
	}
	if !c.collectTasks || e.QueueID == "" || c.seenTasks[e.QueueID] {
		return
	}
	if len(c.taskIDs) == maxChangedTasks {
		c.incomplete = true
		return
	}
	c.seenTasks[e.QueueID] = true
	c.taskIDs = append(c.taskIDs, e.QueueID)
}
