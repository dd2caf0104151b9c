package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	failuresKept  = time.Hour // how long a failure is a finding
	maxFailures   = 20_000    // maximum number of kept failures; the oldest are dropped first
	manyFailures  = 3         // this many with one cause, or in a row in a schedule, are an error
	maxEndsRead   = 20_000    // ended tasks that one refresh reads
	tasksPerRead  = 1000
	jobsPerRead   = 50  // schedules whose last tasks one refresh reads
	maxJobFails   = 100 // counted failures in a row of a schedule
	maxGroups     = 50  // groups that are findings
	maxGroupNames = 3   // agents or schedules that a sentence names
)

// failures groups the tasks that failed in the last hour by cause, and tracks how the
// tasks of each schedule end. Like tally, it follows the journal.
//
// A failure is no longer a finding after it was retried, or after a later task of its
// schedule has completed.
type failures struct {
	byID    map[string]*failure
	byTime  []*failure // those in byID and some removed ones, in the order of their addition
	groups  map[string]*failureGroup
	jobs    map[string]*jobEnds  // by schedule name
	failing map[string]bool      // names in jobs whose newest task failed
	retried map[string]time.Time // when a retry of a task was seen, by the task's id
}

// failure is one task that failed.
type failure struct {
	end
	agent, owner, job, cause, line string
	gone                           bool
}

// end is when a task ended. Ends are ordered by time, then seq.
type end struct {
	at  time.Time
	seq int64
	id  string
}

func (e end) compare(f end) int { return cmp.Or(e.at.Compare(f.at), cmp.Compare(e.seq, f.seq)) }

// failureGroup is the failures with one cause.
type failureGroup struct {
	cause string
	list  []*failure
	parts []failurePart // of list; replaced, never changed in place, because findings share it; nil: make again
}

// failurePart is the failures of a group that the same callers may see.
type failurePart struct {
	owner, agent, job string
	count             int
	first             time.Time
	last              end
	line              string // message of the last failure
}

// jobEnds records how the newest tasks of a schedule ended.
type jobEnds struct {
	done   end       // the newest completed task
	failed []jobFail // failures after it, oldest first, at most maxJobFails
}

type jobFail struct {
	end
	line string
}

func newFailures() *failures {
	return &failures{
		byID: map[string]*failure{}, groups: map[string]*failureGroup{}, jobs: map[string]*jobEnds{}, failing: map[string]bool{}, retried: map[string]time.Time{},
	}
}

// wants reports whether a journal entry requires a read of the ended task's row.
func (f *failures) wants(e *signalbox.Entry) bool {
	if !e.State.Terminal() || e.State == signalbox.Cancelled || e.Queue == signalbox.QueueCommands || e.Queue == signalbox.QueueCalls {
		return false
	}
	return e.State != signalbox.Completed || e.Source == signalbox.SourceScheduler || len(f.failing) > 0
}

// ended records an ended task. It may be called twice for a task, and in any order. Tasks that did
// not land are reported by checkLandings.
func (f *failures) ended(t *signalbox.Task, now time.Time) {
	if t.Mode == signalbox.ModeTool || t.Mode == signalbox.ModeLand || !t.State.Terminal() || t.State == signalbox.Cancelled {
		return
	}
	at := end{t.EndedAt, t.Seq, t.ID}
	if t.SourceJob != "" {
		f.jobEnded(t, at)
	}
	if t.Cause == "" || f.byID[t.ID] != nil || now.Sub(t.EndedAt) >= failuresKept || !f.retried[t.ID].IsZero() || f.resolved(t.SourceJob, at) {
		return
	}
	one := &failure{end: at, agent: view.AgentOf(t), owner: t.Owner, job: t.SourceJob, cause: t.Cause, line: t.Failure}
	g := f.groups[t.Cause]
	if g == nil {
		g = &failureGroup{cause: t.Cause}
		f.groups[t.Cause] = g
	}
	g.list, g.parts = append(g.list, one), nil
	f.byID[t.ID], f.byTime = one, append(f.byTime, one)
}

// resolved reports whether a later task of the same schedule has completed.
func (f *failures) resolved(job string, at end) bool {
	j := f.jobs[job]
	return j != nil && at.compare(j.done) < 0
}

// jobEnded records how a task of a schedule ended.
func (f *failures) jobEnded(t *signalbox.Task, at end) {
	j := f.jobs[t.SourceJob]
	if j == nil {
		j = &jobEnds{}
		f.jobs[t.SourceJob] = j
	}
	switch {
	case at.compare(j.done) <= 0:
	case t.State == signalbox.Completed:
		j.done = at
		j.failed = slices.DeleteFunc(j.failed, func(one jobFail) bool { return one.compare(at) < 0 })
		for _, one := range f.byTime {
			if one.job == t.SourceJob && !one.gone && one.compare(at) < 0 {
				f.drop(one)
			}
		}
	case t.Cause != "":
		if i, known := slices.BinarySearchFunc(j.failed, at, func(one jobFail, at end) int { return one.compare(at) }); !known {
			j.failed = slices.Insert(j.failed, i, jobFail{at, t.Failure})
			j.failed = j.failed[max(0, len(j.failed)-maxJobFails):]
		}
	}
	if len(j.failed) > 0 {
		f.failing[t.SourceJob] = true
	} else {
		delete(f.failing, t.SourceJob)
	}
}

// keepJobs drops removed schedules.
func (f *failures) keepJobs(known func(name string) bool) {
	for name := range f.jobs {
		if !known(name) {
			delete(f.jobs, name)
			delete(f.failing, name)
		}
	}
}

// submitted records that a retry of the task with this id was submitted; "": not a retry.
func (f *failures) submitted(id string, now time.Time) {
	if id == "" {
		return
	}
	f.retried[id] = now // the end of the task may be read later
	if one := f.byID[id]; one != nil {
		f.drop(one)
	}
}

// drop removes a failure from its group.
func (f *failures) drop(one *failure) {
	one.gone = true
	delete(f.byID, one.id)
	if g := f.groups[one.cause]; g != nil {
		g.parts = nil
	}
}

// expire drops failures older than failuresKept, and the oldest ones beyond maxFailures.
func (f *failures) expire(now time.Time) {
	n := 0
	for n < len(f.byTime) && (f.byTime[n].gone || now.Sub(f.byTime[n].at) >= failuresKept || len(f.byTime)-n > maxFailures) {
		if !f.byTime[n].gone {
			f.drop(f.byTime[n])
		}
		n++
	}
	f.byTime = f.byTime[n:]
	for id, at := range f.retried {
		if now.Sub(at) >= failuresKept {
			delete(f.retried, id)
		}
	}
	for cause, g := range f.groups {
		if g.parts != nil {
			continue
		}
		if g.list = slices.DeleteFunc(g.list, func(one *failure) bool { return one.gone }); len(g.list) == 0 {
			delete(f.groups, cause)
			continue
		}
		g.parts = partsOf(g.list)
	}
}

// partsOf sums up failures that the same callers may see.
func partsOf(list []*failure) []failurePart {
	type key struct{ owner, agent, job string }
	at := map[key]int{}
	var parts []failurePart
	for _, one := range list {
		k := key{one.owner, one.agent, one.job}
		i, known := at[k]
		if !known {
			i = len(parts)
			at[k] = i
			parts = append(parts, failurePart{owner: one.owner, agent: one.agent, job: one.job, first: one.at, last: one.end, line: one.line})
		}
		p := &parts[i]
		p.count++
		if one.at.Before(p.first) {
			p.first = one.at
		}
		if one.compare(p.last) > 0 {
			p.last, p.line = one.end, one.line
		}
	}
	return parts
}

// findings returns one finding for each group, largest first, and one for each schedule
// whose newest task failed, unless a group has it.
func (f *failures) findings(schedules *scheduleCache, now time.Time) []finding {
	list, grouped := []finding{}, map[string]bool{}
	groups := slices.SortedFunc(maps.Values(f.groups), func(a, b *failureGroup) int {
		return cmp.Or(len(b.list)-len(a.list), strings.Compare(a.cause, b.cause))
	})
	for n, g := range groups {
		known := map[string]bool{}
		for i := range g.parts {
			job := g.parts[i].job
			grouped[job] = true
			known[job] = schedules.entities[job] != nil
		}
		if n < maxGroups {
			alike := &alike{cause: g.cause, parts: g.parts, schedules: known}
			list = append(list, finding{alike: alike, Attention: alike.attention(g.parts)})
		}
	}
	for _, name := range sortedNames(f.failing) {
		e, last := schedules.entities[name], f.jobs[name].failed
		newest := &last[len(last)-1]
		if e == nil || !e.schedule.Enabled || grouped[name] || now.Sub(newest.at) < failuresKept {
			continue
		}
		text := "failed when it ran last"
		if len(last) > 1 {
			text = fmt.Sprintf("has failed %d times in a row", len(last))
		}
		query := "state:failed,timeout job:" + name
		list = append(list, finding{owner: e.owner, agent: e.scheduleAgent, Attention: api.Attention{
			Kind: "schedule_failing", Level: levelWarning, Subject: name, Since: last[0].at, Last: newest.at, Count: len(last), TaskID: newest.id,
			Text: text + ": " + strings.TrimSuffix(newest.line, "."), Schedule: name, Schedules: name, Query: query, Cure: cureOf(query),
		}})
	}
	return list
}

// alike has the data of a finding about a group of failures, so that each caller gets a
// finding about the failures that they may see.
type alike struct {
	cause     string
	parts     []failurePart
	schedules map[string]bool // the jobs in parts that are schedules of this director
}

func (f *alike) equal(g *alike) bool {
	return (f == nil) == (g == nil) && (f == nil || slices.Equal(f.parts, g.parts))
}

// visible returns the parts that a caller may see.
func (f *alike) visible(who signalbox.Principal) []failurePart {
	if !who.Limited() {
		return f.parts
	}
	return slices.DeleteFunc(slices.Clone(f.parts), func(p failurePart) bool { return !who.Sees(p.owner, "", p.agent) })
}

// attention says how many tasks failed, where and why.
func (f *alike) attention(parts []failurePart) api.Attention {
	a := api.Attention{Kind: "tasks_failed", Level: levelWarning, Cause: f.cause, Since: parts[0].first}
	agents, jobs, last := map[string]bool{}, map[string]bool{}, &parts[0]
	for i := range parts {
		p := &parts[i]
		a.Count += p.count
		if p.first.Before(a.Since) {
			a.Since = p.first
		}
		if p.last.compare(last.last) > 0 {
			last = p
		}
		agents[p.agent], jobs[p.job] = true, true
	}
	only := len(jobs) == 1
	a.Last, a.TaskID, a.Agents, a.Schedules = last.last.at, last.last.id, named(agents), named(jobs)
	a.Subject, a.Text = view.Counted(a.Count, "task", "tasks"), "failed"
	if a.Count > 1 {
		a.Text += " alike"
	}
	if a.Count >= manyFailures {
		a.Level = levelError
	}
	switch {
	case a.Schedules != "" && only:
		a.Subject += " of schedule " + a.Schedules
		if f.schedules[a.Schedules] {
			a.Schedule = a.Schedules
		}
	case a.Schedules != "":
		a.Subject += ", some of schedule " + a.Schedules
	}
	if a.Agents != "" {
		a.Text += " on " + a.Agents
	}
	a.Text += ": " + strings.TrimSuffix(last.line, ".")
	a.Query = fmt.Sprintf("state:failed,timeout cause:%s since:%s", f.cause, a.Since.UTC().Truncate(time.Second).Format(time.RFC3339))
	a.Cure = cureOf(a.Query)
	return a
}

func cureOf(query string) string {
	return "signalbox search '" + query + "' lists them, signalbox retry --match '" + query + "' runs them again"
}

// named lists names for a sentence.
func named(set map[string]bool) string {
	delete(set, "")
	names := sortedNames(set)
	if more := len(names) - maxGroupNames; more > 0 {
		names = append(names[:maxGroupNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// readEnds reads the rows of tasks that have ended.
func (r *refresh) readEnds(ids []string) error {
	for chunk := range slices.Chunk(ids, tasksPerRead) {
		rows, err := r.cfg.Engine.Read().Tasks(r.ctx, chunk)
		if err != nil {
			return err
		}
		for i := range rows {
			r.failures.ended(&rows[i], r.now)
		}
	}
	return nil
}

// readJobs reads how the last tasks of schedules ended if that is not known, because they
// ended before the history that the first refresh reads. After an error the next refresh
// tries again.
func (r *refresh) readJobs() error {
	s := &r.schedules
	for n := 0; n < jobsPerRead && len(s.unread) > 0; n++ {
		schedule := s.unread[len(s.unread)-1]
		if r.failures.jobs[schedule.Name] == nil {
			runs, err := r.cfg.Engine.Read().ScheduleRuns(r.ctx, schedule.ID, manyFailures)
			if err != nil {
				return err
			}
			ids := []string{schedule.LastQueueID}
			for i := range runs {
				if id := runs[i].QueueID; id != "" && id != ids[0] {
					ids = append(ids, id)
				}
			}
			if err := r.readEnds(ids); err != nil {
				return err
			}
			if r.failures.jobs[schedule.Name] == nil {
				r.failures.jobs[schedule.Name] = &jobEnds{} // no task has ended, or all are pruned
			}
		}
		s.unread = s.unread[:len(s.unread)-1]
	}
	return nil
}

// seed adds the tasks that ended before the first refresh, newest first. The tasks that have
// ended, run or wait show which ones were retried.
func (f *failures) seed(ctx context.Context, read store.Reader, ended, inFlight []signalbox.Task, now time.Time) error {
	for i := range ended {
		f.submitted(ended[i].RetryOf, now)
	}
	for i := range inFlight {
		f.submitted(inFlight[i].RetryOf, now)
	}
	var at store.Cursor
	for begin := time.Now(); time.Since(begin) < seedTime; {
		waiting, err := read.Waiting(ctx, "", at, tasksPerRead)
		if err != nil {
			return err
		}
		for i := range waiting {
			f.submitted(waiting[i].RetryOf, now)
		}
		if len(waiting) < tasksPerRead {
			break
		}
		at = store.CursorOf(&waiting[len(waiting)-1])
	}
	for i := range ended {
		f.ended(&ended[i], now)
	}
	slices.SortStableFunc(f.byTime, func(a, b *failure) int { return a.compare(b.end) })
	return nil
}
