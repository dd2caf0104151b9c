package director

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

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
