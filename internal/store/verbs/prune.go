package verbs

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// pruneSessionsMost bounds the sessions deleted by one Prune. The next one continues.
const pruneSessionsMost = 1000

// Prune deletes ended tasks, oldest first, sessions that are unused since and that no task names any more,
// and the beginning of the journal.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	tasks := &pruneTasks{pruning: p}
	if err := s.doAlone(ctx, tasks); err != nil || p.Ended.IsZero() {
		return tasks.done, err
	}
	if p.Usage != 0 {
		if err := s.doAlone(ctx, &pruneUsage{p.Usage}); err != nil {
			return tasks.done, err
		}
	}
	if err := s.doAlone(ctx, pruneHolds{}); err != nil {
		return tasks.done, err
	}
	// Sessions come after the tasks that name them are deleted.
	return tasks.done, s.doAlone(ctx, &pruneSessions{unused: p.Ended, from: &s.pruned})
}

type pruneTasks struct {
	pruning store.Pruning
	done    store.Pruned
}

func (v *pruneTasks) run(x *workingSet) error {
	p := &v.pruning
	if !x.results.has {
		if !x.known {
			return errMissing
		}
		x.want.any, x.want.Cut = true, &p.Ended
		if p.Limit > 0 {
			x.want.Ended = &EndedWant{After: p.After, Before: p.Before(), N: p.Limit}
		}
		return errMissing
	}
	ended := make([]*signalbox.Task, len(x.results.ended))
	for i, r := range x.results.ended {
		ended[i] = r.task
	}
	var going []*signalbox.Task
	going, v.done = p.Choose(ended)
	for _, t := range going {
		x.drop(KindStale, staleID(t.Seq))
		x.change(x.rows[t.Seq], nil)
	}
	if x.results.cut > 0 {
		x.journalCut, x.wrote = x.results.cut, true
	}
	return nil
}

// pruneSessions continues where it stopped the last time, so that sessions that must stay do not keep it from
// reaching others.
type pruneSessions struct {
	unused time.Time
	from   **Doc

	begun int
	old   []signalbox.Session
	last  *Doc
}

func (v *pruneSessions) run(x *workingSet) error {
	if v.begun != x.run {
		v.begun, v.old, v.last = x.run, nil, nil
	}
	if !x.results.has {
		if !x.known {
			return errMissing
		}
		x.want.any = true
		x.want.Pages = append(x.want.Pages, Page{Kind: kindSession, BySort: true, After: *v.from, Limit: pruneSessionsMost})
		return errMissing
	}
	if x.results.named == nil {
		if err := v.choose(x); err != nil || len(v.old) > 0 {
			return err
		}
	}
	for i := range v.old {
		held := &v.old[i]
		if x.results.named[held.ID] {
			continue
		}
		x.drop(kindSession, held.ID)
		if held.Current {
			x.drop(kindCurrent, held.Agent)
		}
	}
	*v.from = v.last
	return nil
}

// choose finds out which of the unused sessions are named by a task.
func (v *pruneSessions) choose(x *workingSet) error {
	page := x.results.page
	for i := range page {
		if page[i].Sort >= v.unused.UnixMilli() {
			break
		}
		held, err := pack.ReadSession(page[i].ID, page[i].Body)
		if err != nil {
			continue // it stays, and its readers get the error
		}
		v.old = append(v.old, held)
		x.want.Named = append(x.want.Named, held.ID)
	}
	if n := len(page); n == pruneSessionsMost && page[n-1].Sort < v.unused.UnixMilli() {
		v.last = &page[n-1]
	}
	if len(v.old) == 0 {
		return nil
	}
	x.want.any = true
	return errMissing
}
