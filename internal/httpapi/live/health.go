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
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// The values of api.Attention.Level.
const (
	levelInfo    = "info"
	levelWarning = "warning"
	levelError   = "error"
)

// maxAttention limits the findings that a verdict lists.
const maxAttention = 20

// findings is everything that needs a person, at one moment. A caller gets the visible
// part as an api.Verdict.
type findings struct {
	list    []finding // worst first
	notes   []finding // findings that need no person
	allWell string    // the sentence of the verdict if list is empty
}

// finding is one thing that needs a person. If it has an agent or an owner, only callers
// who may use that agent, or have that owner key, see it.
type finding struct {
	api.Attention
	agent  string
	owner  string
	agents []string // if not nil: only callers who may use one of these see it
	alike  *alike   // for failures with one cause: decides who sees which of them
}

// shown is the form of the finding for a caller.
func (f *finding) shown(who signalbox.Principal) (a api.Attention, visible bool) {
	if f.agents != nil {
		return f.Attention, !who.Limited() || slices.ContainsFunc(f.agents, who.MayUse)
	}
	if f.alike == nil || !who.Limited() {
		return f.Attention, f.agent == "" && f.owner == "" || who.Sees(f.owner, "", f.agent)
	}
	parts := f.alike.visible(who)
	if len(parts) == 0 {
		return a, false
	}
	return f.alike.attention(parts), true
}

// shown lists the findings that a caller may see, at most maxAttention.
func shown(list []finding, who signalbox.Principal) []api.Attention {
	out := []api.Attention{}
	for i := range list {
		if len(out) == maxAttention {
			break
		}
		if a, visible := list[i].shown(who); visible {
			out = append(out, a)
		}
	}
	return out
}

// verdict is the form of the findings for a caller. Everybody sees whether there are
// findings, and how many.
func (f *findings) verdict(who signalbox.Principal) api.Verdict {
	out := api.Verdict{OK: len(f.list) == 0, Text: f.allWell, Attention: shown(f.list, who), Notes: shown(f.notes, who)}
	out.More = len(f.list) - len(out.Attention)
	switch more := len(f.list) - 1; {
	case out.OK:
	case len(out.Attention) == 0:
		out.Text = "Something needs a person with more rights than this token."
	default:
		worst := out.Attention[0]
		out.Text = worst.Subject + " " + worst.Text
		if more > 0 {
			out.Text += fmt.Sprintf("; and %d more", more)
		}
		out.Text += "."
	}
	return out
}

// storeDown is the findings while the store does not answer. last is the time of the
// last successful read.
func storeDown(last time.Time) findings {
	return findings{list: []finding{{Attention: api.Attention{
		Kind: "store", Level: levelError, Subject: "The store", Since: last,
		Text: "does not answer: the data is from " + last.Format("15:04:05 MST"),
		Cure: "check its disk or server; the director's log has the cause, and signalbox doctor shows more",
	}}}}
}

// findings collects the agents' findings, which were made with their entities, and checks
// everything else.
func (r *refresh) findings() findings {
	c := checker{now: r.now, maxSilence: 3 * r.cfg.HeartbeatInterval()}
	for _, name := range sortedNames(r.troubled) {
		c.findings = append(c.findings, r.agents[name].findings...)
	}
	r.checkQueues(&c)
	r.checkTools(&c)
	r.checkGates(&c)
	r.checkLandings(&c)
	c.findings = append(c.findings, r.schedules.check(r.ctx, r.cfg.Schedules, r.now)...)
	_ = r.readJobs()
	if len(r.failures.jobs) > signalbox.MaxSchedules {
		r.failures.keepJobs(func(name string) bool { return r.schedules.entities[name] != nil })
	}
	r.failures.expire(r.now)
	c.findings = append(c.findings, r.failures.findings(&r.schedules, r.now)...)
	r.setSince(c.findings, r.now)
	var f findings
	for _, one := range c.findings {
		if one.Level == levelInfo {
			f.notes = append(f.notes, one)
		} else {
			f.list = append(f.list, one)
		}
	}
	slices.SortStableFunc(f.list, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.Level, b.Level), a.Since.Compare(b.Since), strings.Compare(a.Subject, b.Subject))
	})
	totals := &r.state.totals
	f.allWell = "All is well: " + view.Counted(totals.AgentsUp, "agent is", "agents are") + " connected."
	switch waiting := totals.Pending; {
	case totals.AgentsUp == 0 && waiting > 0: // waiting for less than unservedAfter, or not due yet
		f.allWell = "No agent is connected yet, and " + view.Counted(waiting, "task waits.", "tasks wait.")
	case totals.AgentsUp == 0:
		f.allWell = "Nothing waits, and no agent is connected yet."
	default:
		f.allWell = cmp.Or(r.quietly(), f.allWell)
	}
	return f
}

func (f *findings) equal(other *findings) bool {
	same := func(a, b finding) bool {
		return a.Attention == b.Attention && a.agent == b.agent && a.owner == b.owner && slices.Equal(a.agents, b.agents) && a.alike.equal(b.alike)
	}
	return f.allWell == other.allWell && slices.EqualFunc(f.list, other.list, same) && slices.EqualFunc(f.notes, other.notes, same)
}

// setSince sets a zero Since to the time at which the same finding was first made.
func (b *builder) setSince(list []finding, now time.Time) {
	seen := map[string]time.Time{}
	for i := range list {
		f := &list[i]
		key := f.Kind + " " + f.Subject + " " + f.TaskID + f.Cause
		if f.Since.IsZero() {
			f.Since = now
			if at, known := b.firstSeen[key]; known {
				f.Since = at
			}
		}
		seen[key] = f.Since
	}
	b.firstSeen = seen
}

// Health refreshes the view, unless it was just refreshed, and returns the verdict for a
// caller. If the store does not answer, the verdict says so.
func (p *Projection) Health(ctx context.Context, who signalbox.Principal) *api.Verdict {
	var verdict api.Verdict
	if p.EnsureFresh(ctx) != nil {
		f := storeDown(p.cfg.Engine.Now())
		verdict = f.verdict(who)
	} else {
		verdict = p.verdict(who)
	}
	return &verdict
}

// FailingSchedules counts the enabled schedules whose newest firing made a task that
// failed.
func (p *Projection) FailingSchedules() int {
	p.refreshMu.Lock()
	defer p.refreshMu.Unlock()
	n := 0
	for name := range p.builder.failures.failing {
		if e := p.builder.schedules.entities[name]; e != nil && e.schedule.Enabled && !signalbox.RunStatus(e.schedule.LastStatus).Failed() {
			n++
		}
	}
	return n
}

const (
	// Schedules are not read again within schedulesEvery, nor within
	// schedulesPauseFactor times the duration of the last read.
	schedulesEvery       = 5 * time.Second
	schedulesPauseFactor = 500
	// schedulesMaxAge is after how long unchanged schedules are read again: no
	// event says that a schedule has become overdue.
	schedulesMaxAge     = 30 * time.Second
	maxChangedSchedules = 100 // in one delta
)

// scheduleCache caches the schedules. There may be thousands, so not every refresh
// reads them.
type scheduleCache struct {
	dirty    bool               // a schedule changed after readAt
	readAt   time.Time          // by the wall clock, like nextRead
	nextRead time.Time          // earliest time of the next read
	entities map[string]*entity // by name
	findings []finding
	unread   []signalbox.Schedule // enabled ones with tasks whose ends have not been read yet
}

// check returns the findings about the schedules. It first reads the schedules if they may
// have changed. If that fails, it returns the old findings: the scheduler itself reports
// the error.
func (s *scheduleCache) check(ctx context.Context, from Schedules, now time.Time) []finding {
	begin := time.Now()
	if from == nil || begin.Before(s.nextRead) || !s.dirty && begin.Sub(s.readAt) < schedulesMaxAge {
		return s.findings
	}
	all, err := from.All(ctx)
	if err != nil {
		s.nextRead = begin.Add(schedulesEvery)
		return s.findings
	}
	s.dirty, s.findings = false, nil
	s.entities, s.unread = make(map[string]*entity, len(all)), nil
	for i := range all {
		s.entities[all[i].Name] = scheduleEntity(&all[i])
		s.checkOne(&all[i], from.Due, now)
		if all[i].Enabled && all[i].LastQueueID != "" {
			s.unread = append(s.unread, all[i])
		}
	}
	s.readAt = begin
	s.nextRead = begin.Add(max(schedulesEvery, schedulesPauseFactor*time.Since(begin)))
	return s.findings
}

// checkOne adds a finding if the schedule is overdue or failed last. due is
// Schedules.Due.
func (s *scheduleCache) checkOne(schedule *signalbox.Schedule, due func(signalbox.Schedule) time.Time, now time.Time) {
	if !schedule.Enabled || len(s.findings) >= 2*maxAttention {
		return
	}
	dueAt := due(*schedule)
	f := finding{
		agent: schedule.Agent, owner: schedule.Owner,
		Attention: api.Attention{Level: levelWarning, Subject: schedule.Name, TaskID: schedule.LastQueueID},
	}
	switch late := now.Sub(dueAt); {
	case !dueAt.IsZero() && late > signalbox.OnTime:
		f.Kind, f.Level, f.Since = "schedule_overdue", levelError, dueAt.UTC()
		f.Text = fmt.Sprintf("should have fired at %s, %s ago, and has not", dueAt.UTC().Format(time.RFC3339), roughly(late))
		f.Cure = "see that a scheduler runs (signalbox status), or fire it with signalbox schedules trigger " + schedule.Name
	case schedule.LastStatus.Failed():
		f.Kind, f.Since = "schedule_failing", schedule.LastRun.UTC()
		f.Text = fmt.Sprintf("made no task when it fired last (%s)", schedule.LastStatus)
		if schedule.LastError != "" {
			f.Text += ": " + httpio.Clip(schedule.LastError)
		}
		f.Cure = "signalbox schedules executions " + schedule.Name + " says more"
	default:
		return
	}
	s.findings = append(s.findings, f)
}

func scheduleEntity(s *signalbox.Schedule) *entity {
	return &entity{
		key: "schedule:" + s.ID, owner: s.Owner, scheduleAgent: s.Agent,
		schedule: &api.LiveSchedule{ID: s.ID, Name: s.Name, Enabled: s.Enabled, LastStatus: string(s.LastStatus)},
	}
}

// changed reads the schedules with these names, up to maxChangedSchedules, and returns the
// entities of existing and of removed ones.
func (s *scheduleCache) changed(ctx context.Context, from Schedules, names map[string]bool) (existing, gone []*entity) {
	for _, name := range sortedNames(names) {
		if from == nil || len(existing)+len(gone) == maxChangedSchedules {
			break
		}
		schedule, err := from.Get(ctx, name)
		if err == nil {
			existing = append(existing, render(scheduleEntity(&schedule)))
			continue
		}
		if before := s.entities[name]; before != nil && signalbox.CodeOf(err) == signalbox.CodeNotFound {
			gone = append(gone, before)
		}
	}
	return existing, gone
}

func sortedNames(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
