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
