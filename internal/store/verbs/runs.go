package verbs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// runList is the runs of a schedule, newest first.
type runList struct {
	schedule string
	runs     []signalbox.ScheduleRun
}

// runs returns the runs of a schedule; missing is set if they are not loaded.
func (x *workingSet) runs(schedule string) (*runList, error) {
	l := &runList{schedule: schedule}
	for _, r := range x.page(kindRuns + schedule) {
		run, err := decodeDoc(r, readRun(schedule))
		if err != nil {
			return nil, err
		}
		l.runs = append(l.runs, *run)
	}
	slices.SortFunc(l.runs, newestRun)
	return l, nil
}

func newestRun(a, b signalbox.ScheduleRun) int {
	return cmp.Or(cmp.Compare(b.FiredAt.UnixMilli(), a.FiredAt.UnixMilli()), cmp.Compare(b.ID, a.ID))
}

func (l *runList) find(id string) int {
	return slices.IndexFunc(l.runs, func(r signalbox.ScheduleRun) bool { return r.ID == id })
}

// decided reports whether the run with that id exists and is no longer open.
func (l *runList) decided(id string) bool {
	if l == nil {
		return false
	}
	n := l.find(id)
	return n >= 0 && !l.runs[n].Status.Open()
}

// keep inserts runs and drops the oldest beyond those that are kept, but never an open one.
func (l *runList) keep(x *workingSet, runs []signalbox.ScheduleRun) {
	put := map[string]bool{}
	for _, r := range runs {
		r.ScheduleID = l.schedule
		if n := l.find(r.ID); n >= 0 {
			l.runs = slices.Delete(l.runs, n, n+1)
		}
		n, _ := slices.BinarySearchFunc(l.runs, r, newestRun)
		l.runs = slices.Insert(l.runs, n, r)
		put[r.ID] = true
	}
	for n := range l.runs {
		r := &l.runs[n]
		switch {
		case n >= signalbox.MaxScheduleRuns && !r.Status.Open():
			x.dropRun(l.schedule, r.ID)
		case put[r.ID]:
			x.putRun(*r)
		}
	}
}

func (x *workingSet) putRun(r signalbox.ScheduleRun) {
	body := pack.Run(&r)
	x.put(kindRuns+r.ScheduleID, r.ID, r.FiredAt.UnixMilli(), body, &r)
	if r.Status.Open() {
		x.put(kindOpenRun, openID(r.ScheduleID, r.ID), r.FiredAt.UnixMilli(), body, nil)
	} else {
		x.drop(kindOpenRun, openID(r.ScheduleID, r.ID))
	}
}

func (x *workingSet) dropRun(schedule, id string) {
	x.drop(kindRuns+schedule, id)
	x.drop(kindOpenRun, openID(schedule, id))
}

// openID identifies a run among those of all schedules: the length of the schedule's id marks where it ends.
func openID(schedule, run string) string { return strconv.Itoa(len(schedule)) + ":" + schedule + run }

func readOpenRun(id string, body []byte) (signalbox.ScheduleRun, error) {
	length, rest, _ := strings.Cut(id, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return signalbox.ScheduleRun{}, signalbox.Errorf(signalbox.CodeStoreCorrupt, "an open firing is kept under the name %q, which no schedule and firing have", id)
	}
	return pack.ReadRun(rest[:n], rest[n:], body)
}

func readRun(schedule string) func(id string, body []byte) (signalbox.ScheduleRun, error) {
	return func(id string, body []byte) (signalbox.ScheduleRun, error) { return pack.ReadRun(schedule, id, body) }
}

// ScheduleRuns lists runs of a schedule, newest first.
func (s *Store) ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	docs, err := s.page(ctx, Page{Kind: kindRuns + id, BySort: true, Falling: true, Limit: limit})
	if err != nil {
		return nil, err
	}
	return decodeAll(docs, readRun(id))
}

// OpenRuns lists the open runs of all schedules.
func (s *Store) OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	list, err := readAll(ctx, s, kindOpenRun, readOpenRun)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b signalbox.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.FiredAt.UnixMilli(), b.FiredAt.UnixMilli()), cmp.Compare(a.ScheduleID, b.ScheduleID), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}
