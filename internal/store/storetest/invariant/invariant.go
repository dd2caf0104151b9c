// Package invariant checks, through the reads of a store alone, what must hold between any two verbs: the invariants 3, 6 and 7
// of the design (slots, slot rows, one place for each task), terminal rows with a reason, the claim index, the lists of gates and
// of open landings, the states of accounts, the order of enqueueing, a journal without gaps, one current session per agent, the
// chain of the audit log, schedules with unique names and, if open, with firings, and agents held only by existing directors.
//
// The reads are not one snapshot. If others write to the store meanwhile, a finding is a reason to check
// again, not a proof.
package invariant

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Check returns all findings, joined, or the error of a read.
func Check(ctx context.Context, r store.Reader) error {
	v, err := load(ctx, r)
	if err != nil {
		return fmt.Errorf("read the store for its invariants: %w", err)
	}
	v.checkPlaces()
	v.checkRows()
	v.checkOrder()
	v.checkCounts()
	v.checkKept()
	v.checkSlots()
	v.checkCapacity()
	v.checkReady()
	v.checkParked()
	v.checkLandings()
	v.checkAccounts()
	v.checkHolds()
	v.checkJournal()
	v.checkSessions()
	v.checkSchedules()
	v.checkPeers()
	return errors.Join(v.found...)
}

// view is the result of all reads.
type view struct {
	waiting  []signalbox.Task
	flying   []signalbox.Task
	parked   []signalbox.Task
	ended    []signalbox.Task
	tasks    map[string]signalbox.Task
	queues   map[string][]string // ids by queue, as Waiting lists them
	counts   store.Counts
	kept     map[string]int64
	slots    []signalbox.Slot
	agents   []signalbox.Agent
	accounts []signalbox.Account
	holds    []signalbox.Hold
	landings []signalbox.Task
	sessions []signalbox.Session
	sequence []int64 // of the journal
	// generation counts from 1 how often the server lost something; 0 for a store without a server.
	generation int64
	oldest     int64
	newest     int64

	directors []store.Director
	holders   map[string]string

	schedules []signalbox.Schedule
	openRuns  []signalbox.ScheduleRun

	found []error
}

func (v *view) wrong(format string, args ...any) {
	v.found = append(v.found, fmt.Errorf(format, args...))
}

const page = 1000

func load(ctx context.Context, r store.Reader) (*view, error) {
	v := &view{tasks: map[string]signalbox.Task{}, queues: map[string][]string{}}
	var errs [10]error
	v.counts, errs[0] = r.Counts(ctx)
	v.flying, errs[1] = r.InFlight(ctx)
	v.slots, errs[2] = r.Slots(ctx)
	v.agents, errs[3] = r.Agents(ctx)
	v.oldest, v.newest, errs[4] = r.JournalRange(ctx)
	v.kept, errs[5] = r.Kept(ctx)
	v.parked, errs[6] = r.Parked(ctx, "", "")
	v.accounts, errs[7] = r.Accounts(ctx)
	v.holds, errs[8] = r.Holds(ctx)
	v.landings, errs[9] = r.Landings(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	var err error
	if v.waiting, err = v.allWaiting(ctx, r, ""); err != nil {
		return nil, err
	}
	for queue := range v.counts.Queues {
		list, err := v.allWaiting(ctx, r, queue)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			v.queues[queue] = append(v.queues[queue], t.ID)
		}
	}
	if err := v.loadEnded(ctx, r); err != nil {
		return nil, err
	}
	if err := v.loadSessions(ctx, r); err != nil {
		return nil, err
	}
	if err := errors.Join(v.loadSchedules(ctx, r), v.loadPeers(ctx, r)); err != nil {
		return nil, err
	}
	if err := v.checkAudit(ctx, r); err != nil {
		return nil, err
	}
	return v, v.loadJournal(ctx, r)
}

// allWaiting reads a queue page by page. If a page does not get beyond the previous one, that is a finding
// and ends the read, which would never end otherwise.
func (v *view) allWaiting(ctx context.Context, r store.Reader, queue string) ([]signalbox.Task, error) {
	var all []signalbox.Task
	var after store.Cursor
	for {
		list, err := r.Waiting(ctx, queue, after, page)
		if err != nil || len(list) == 0 {
			return all, err
		}
		all = append(all, list...)
		last := store.CursorOf(&list[len(list)-1])
		if after != (store.Cursor{}) && !after.Before(last) {
			v.wrong("the list of queue %q goes back from %+v to %+v", queue, after, last)
			return all, nil
		}
		after = last
	}
}

func (v *view) loadEnded(ctx context.Context, r store.Reader) error {
	q := store.HistoryQuery{Limit: page}
	for {
		p, err := r.History(ctx, q)
		if err != nil {
			return err
		}
		v.ended = append(v.ended, p.Tasks...)
		if p.Next == "" {
			return nil
		}
		if p.Next == q.Before {
			return fmt.Errorf("the history does not get past the cursor %q", p.Next)
		}
		q.Before = p.Next
	}
}

func (v *view) loadJournal(ctx context.Context, r store.Reader) error {
	if shared, ok := r.(interface{ Generation() int64 }); ok {
		v.generation = shared.Generation()
	}
	for after := int64(0); ; {
		list, err := r.Journal(ctx, after, page)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, e := range list {
			v.sequence = append(v.sequence, e.Seq)
		}
		last := list[len(list)-1].Seq
		if last <= after {
			v.wrong("the journal goes back from %d to %d", after, last)
			return nil
		}
		after = last
	}
}
