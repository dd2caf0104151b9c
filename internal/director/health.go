package director

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// The levels of what needs a person.
const (
	levelWarning = "warning"
	levelError   = "error"
)

// maxAttention bounds what a verdict lists.
const maxAttention = 20

// outlook is what needs a person, of which each caller is told what it may
// see.
type outlook struct {
	all  []attention // worst first
	fine string      // the sentence where there is none
	mark uint64
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
func (o *outlook) verdict(who signalbox.Principal) api.Verdict {
	out := api.Verdict{OK: len(o.all) == 0, Text: o.fine, Attention: []api.Attention{}}
	for i := range o.all {
		if o.all[i].visible(who) && len(out.Attention) < maxAttention {
			out.Attention = append(out.Attention, o.all[i].Attention)
		}
	}
	out.More = len(o.all) - len(out.Attention)
	switch more := len(o.all) - 1; {
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

// storeOutlook is the verdict while the store does not answer.
func storeOutlook(last, now time.Time) outlook {
	return outlook{all: []attention{{Attention: api.Attention{
		Kind: "store", Level: levelError, Subject: "The store", Since: last,
		Text: "does not answer: nothing that is shown is newer than " + last.Format("15:04:05 MST"),
		Cure: "look at its disk or server; the director's log has the cause, and signalbox doctor says more",
	}}}, mark: uint64(now.UnixNano()) | 1}
}

// outlook judges what a look has seen.
func (v *view) outlook(s *scene) outlook {
	var o outlook
	judge := judge{view: v, scene: s, add: func(a attention) { o.all = append(o.all, a) }}
	judge.agents()
	judge.queues()
	judge.tools()
	o.all = append(o.all, v.eyes.plans.judge(v.ctx, v.eyes.d.cfg.Schedules, v.now)...)
	v.eyes.since(&o, v.now)
	slices.SortStableFunc(o.all, func(a, b attention) int {
		return cmp.Or(strings.Compare(a.Level, b.Level), a.Since.Compare(b.Since), strings.Compare(a.Subject, b.Subject))
	})
	o.fine = "All is well: " + counted(s.totals.AgentsUp, "agent is", "agents are") + " connected."
	switch waiting := s.totals.Pending; {
	case s.totals.AgentsUp == 0 && waiting > 0: // for less than unservedAfter, or not to start yet
		o.fine = "No agent is connected yet, and " + counted(waiting, "task waits.", "tasks wait.")
	case s.totals.AgentsUp == 0:
		o.fine = "Nothing waits, and no agent is connected yet."
	}
	all := make([]api.Attention, len(o.all))
	for i := range o.all {
		all[i] = o.all[i].Attention
	}
	o.mark = newMarking().text(o.fine).json(all).sum()
	return o
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// since remembers since when something needs a person, where nothing else
// says it.
func (e *eyes) since(o *outlook, now time.Time) {
	still := map[string]time.Time{}
	for i := range o.all {
		a := &o.all[i]
		key := a.Kind + " " + a.Subject + " " + a.TaskID
		if a.Since.IsZero() {
			a.Since = now
			if at, known := e.first[key]; known {
				a.Since = at
			}
		}
		still[key] = a.Since
	}
	e.first = still
}

// health is the verdict of this moment for a caller.
func (d *Director) health(ctx context.Context, who signalbox.Principal) *api.Verdict {
	scene, err := d.sight.fresh(ctx)
	if err != nil {
		o := storeOutlook(d.engine.Now(), d.engine.Now())
		verdict := o.verdict(who)
		return &verdict
	}
	verdict := scene.health.verdict(who)
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
	known   map[string]*part // by name
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
	p.known = make(map[string]*part, len(all))
	for i := range all {
		p.take(&all[i], from, now)
	}
	p.read = begin
	p.next = begin.Add(max(plansEvery, plansShare*time.Since(begin)))
	return p.wrong
}

// take judges one schedule.
func (p *plans) take(s *signalbox.Schedule, from Schedules, now time.Time) {
	p.known[s.Name] = planPart(s)
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
			at.Text += ": " + clip(s.LastError)
		}
		at.Cure = "signalbox schedules executions " + s.Name + " says more"
	default:
		return
	}
	p.wrong = append(p.wrong, at)
}

func planPart(s *signalbox.Schedule) *part {
	return &part{
		key: "schedule:" + s.ID, mark: newMarking().text(s.ID).num(s.Rev).sum(), owner: s.Owner, forAgent: s.Agent,
		schedule: &api.LiveSchedule{ID: s.ID, Name: s.Name, Enabled: s.Enabled, LastStatus: string(s.LastStatus)},
	}
}

// moved returns the schedules of these names as they are now.
func (p *plans) moved(ctx context.Context, from Schedules, names map[string]bool) []*part {
	var parts []*part
	for _, name := range sortedNames(names) {
		if from == nil || len(parts) == maxMovedPlans {
			return parts
		}
		s, err := from.Get(ctx, name)
		if err == nil {
			parts = append(parts, planPart(&s))
			continue
		}
		if before := p.known[name]; before != nil && signalbox.CodeOf(err) == signalbox.CodeNotFound {
			gone := *before
			gone.mark = goneMark
			parts = append(parts, &gone)
		}
	}
	return parts
}
