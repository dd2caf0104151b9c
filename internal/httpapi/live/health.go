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

// The levels of what needs a person.
const (
	levelWarning = "warning"
	levelError   = "error"
)

// maxAttention bounds what a verdict lists.
const maxAttention = 20

// findings is what needs a person, of which each caller is told what it may
// see.
type findings struct {
	list    []attention // worst first
	allWell string      // the sentence where there is none
}

// attention is one thing that needs a person. It is told to those who may use
// its agent, where it has one, or whose owner key it has.
type attention struct {
	api.Attention
	agent string
	owner string
}

func (a *attention) visible(who signalbox.Principal) bool {
	return a.agent == "" && a.owner == "" || who.Sees(a.owner, "", a.agent)
}

// verdict is what a caller is told. That something is wrong is told to all;
// what it is, to those who may see it.
func (o *findings) verdict(who signalbox.Principal) api.Verdict {
	out := api.Verdict{OK: len(o.list) == 0, Text: o.allWell, Attention: []api.Attention{}}
	for i := range o.list {
		if o.list[i].visible(who) && len(out.Attention) < maxAttention {
			out.Attention = append(out.Attention, o.list[i].Attention)
		}
	}
	out.More = len(o.list) - len(out.Attention)
	switch more := len(o.list) - 1; {
	case out.OK:
	case len(out.Attention) == 0:
		out.Text = "Something needs a person who may see more than this token."
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

// storeDown is the verdict while the store does not answer.
func storeDown(last time.Time) findings {
	return findings{list: []attention{{Attention: api.Attention{
		Kind: "store", Level: levelError, Subject: "The store", Since: last,
		Text: "does not answer: nothing that is shown is newer than " + last.Format("15:04:05 MST"),
		Cure: "look at its disk or server; the director's log has the cause, and signalbox doctor says more",
	}}}}
}

// findings judges what a look has seen.
func (l *refresh) findings() findings {
	var o findings
	j := judge{now: l.now, silence: 3 * l.cfg.HeartbeatInterval()}
	for _, name := range sortedNames(l.needAttention) {
		j.all = append(j.all, l.agents[name].attention...)
	}
	l.judgeQueues(&j)
	l.judgeTools(&j)
	o.list = append(j.all, l.plans.judge(l.ctx, l.cfg.Schedules, l.now)...)
	l.since(&o, l.now)
	slices.SortStableFunc(o.list, func(a, b attention) int {
		return cmp.Or(strings.Compare(a.Level, b.Level), a.Since.Compare(b.Since), strings.Compare(a.Subject, b.Subject))
	})
	totals := &l.state.totals
	o.allWell = "All is well: " + view.Counted(totals.AgentsUp, "agent is", "agents are") + " connected."
	switch waiting := totals.Pending; {
	case totals.AgentsUp == 0 && waiting > 0: // for less than unservedAfter, or not to start yet
		o.allWell = "No agent is connected yet, and " + view.Counted(waiting, "task waits.", "tasks wait.")
	case totals.AgentsUp == 0:
		o.allWell = "Nothing waits, and no agent is connected yet."
	}
	return o
}

func (o *findings) equal(other *findings) bool {
	return o.allWell == other.allWell && slices.Equal(o.list, other.list)
}

// since remembers since when something needs a person, where nothing else
// says it.
func (b *builder) since(o *findings, now time.Time) {
	still := map[string]time.Time{}
	for i := range o.list {
		a := &o.list[i]
		key := a.Kind + " " + a.Subject + " " + a.TaskID
		if a.Since.IsZero() {
			a.Since = now
			if at, known := b.firstSeen[key]; known {
				a.Since = at
			}
		}
		still[key] = a.Since
	}
	b.firstSeen = still
}

// Health is the verdict of this moment for a principal.
func (p *Projection) Health(ctx context.Context, who signalbox.Principal) *api.Verdict {
	var verdict api.Verdict
	if p.EnsureFresh(ctx) != nil {
		o := storeDown(p.cfg.Engine.Now())
		verdict = o.verdict(who)
	} else {
		verdict = p.verdict(who)
	}
	return &verdict
}

const (
	// plansEvery is the least time from one reading of all schedules to the
	// next, and plansShare how much longer than a reading it is: many schedules
	// are read seldom.
	plansEvery = 5 * time.Second
	plansShare = 500
	// maxMovedPlans bounds the schedules that are told of in one step.
	maxMovedPlans = 100
)

// plans are the schedules as a look sees them. They are read apart from it:
// there may be thousands.
type plans struct {
	next    time.Time // by the real clock: not read before
	changed bool      // since they were read
	read    time.Time
	known   map[string]*entity // by name
	wrong   []attention
}

// plansAtLeast is how often schedules are read though none is known to have
// changed: one that is overdue announces nothing.
const plansAtLeast = 30 * time.Second

// judge says what is wrong with schedules. What cannot be read keeps what is
// known: the scheduler says so itself.
func (p *plans) judge(ctx context.Context, from Schedules, now time.Time) []attention {
	begin := time.Now()
	if from == nil || begin.Before(p.next) || !p.changed && begin.Sub(p.read) < plansAtLeast {
		return p.wrong
	}
	all, err := from.All(ctx)
	if err != nil {
		p.next = begin.Add(plansEvery)
		return p.wrong
	}
	p.changed, p.wrong = false, nil
	p.known = make(map[string]*entity, len(all))
	for i := range all {
		p.take(&all[i], from, now)
	}
	p.read = begin
	p.next = begin.Add(max(plansEvery, plansShare*time.Since(begin)))
	return p.wrong
}

// take judges one schedule.
func (p *plans) take(s *signalbox.Schedule, from Schedules, now time.Time) {
	p.known[s.Name] = planEntity(s)
	if !s.Enabled || len(p.wrong) >= 2*maxAttention {
		return
	}
	due := from.Due(*s)
	at := attention{agent: s.Agent, owner: s.Owner, Attention: api.Attention{Level: levelWarning, Subject: s.Name, TaskID: s.LastQueueID}}
	switch late := now.Sub(due); {
	case !due.IsZero() && late > signalbox.OnTime:
		at.Kind, at.Level, at.Since = "schedule_overdue", levelError, due.UTC()
		at.Text = fmt.Sprintf("should have fired at %s, %s ago, and has not", due.UTC().Format(time.RFC3339), roughly(late))
		at.Cure = "see that a scheduler runs (signalbox status), or fire it with signalbox schedules trigger " + s.Name
	case s.LastStatus.Failed():
		at.Kind, at.Since = "schedule_failing", s.LastRun.UTC()
		at.Text = fmt.Sprintf("made no task when it fired last (%s)", s.LastStatus)
		if s.LastError != "" {
			at.Text += ": " + httpio.Clip(s.LastError)
		}
		at.Cure = "signalbox schedules executions " + s.Name + " says more"
	default:
		return
	}
	p.wrong = append(p.wrong, at)
}

func planEntity(s *signalbox.Schedule) *entity {
	return &entity{
		key: "schedule:" + s.ID, owner: s.Owner, forAgent: s.Agent,
		schedule: &api.LiveSchedule{ID: s.ID, Name: s.Name, Enabled: s.Enabled, LastStatus: string(s.LastStatus)},
	}
}

// moved returns the schedules of these names as they are now, and those that are
// gone.
func (p *plans) moved(ctx context.Context, from Schedules, names map[string]bool) (there, gone []*entity) {
	for _, name := range sortedNames(names) {
		if from == nil || len(there)+len(gone) == maxMovedPlans {
			break
		}
		s, err := from.Get(ctx, name)
		if err == nil {
			there = append(there, rendered(planEntity(&s)))
			continue
		}
		if before := p.known[name]; before != nil && signalbox.CodeOf(err) == signalbox.CodeNotFound {
			gone = append(gone, before)
		}
	}
	return there, gone
}

func sortedNames(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
