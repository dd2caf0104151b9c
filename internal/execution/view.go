package execution

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// View adds to what the engine shows of an agent whether it is there and well.
// wall and now are one moment by both clocks.
func View(a *engine.LiveAgent, p *Presence, h *Health, wall, now time.Time, grace time.Duration) {
	if a.Up = p.Up(); !a.Up {
		a.Message = p.why
		a.DownSince = wall.Add(-p.Away(now))
		a.StrandAt = a.DownSince.Add(grace)
	}
	a.Closed = h.Closed()
	if why := h.Withholds(); why != "" && a.Up {
		a.Held, a.BackedOff, a.Message = true, true, why
	}
}

// ViewRuns adds what is known of its runs. several says that it may run more than
// one: then what the agent says of its progress says nothing of one of them.
func ViewRuns[F Follower](a *engine.LiveAgent, runs map[string]F, several bool) {
	if several {
		a.Progress = make(map[string]time.Time, len(runs))
	}
	for id, f := range runs {
		r := f.Execution()
		if several {
			a.Progress[id] = r.Printed
		}
		if r.Note == "" {
			continue
		}
		if a.Notes == nil {
			a.Notes = map[string]string{}
		}
		a.Notes[id] = r.Note
	}
}

// Shown is what View and ViewRuns show of an agent, and what else no row says of it,
// apart from when it was heard. Two that are equal show the same.
type Shown struct {
	Slots, Isolated                  int
	Kind, Message                    string
	Held, Fencing, Terminal, Removed bool

	up      bool
	why     string
	health  Health
	printed int64  // sums up the seconds in which it and its runs printed last
	notes   string // of its runs
}

// Show adds what the presence, the health and the runs of an agent show.
func Show[F Follower](s Shown, p *Presence, h *Health, runs map[string]F, progress time.Time) Shown {
	s.up, s.why, s.health, s.printed = p.Up(), p.why, *h, progress.Unix()
	for _, f := range runs {
		r := f.Execution()
		s.printed += r.Printed.Unix()
		s.notes += r.Note
	}
	return s
}

// Strand deals with the session tasks of agents that have been gone for so long.
func Strand(ctx context.Context, e *engine.Engine, log *slog.Logger, gone map[string]time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if err := e.Strand(ctx, name, gone[name]); err != nil && ctx.Err() == nil {
			log.Error("session tasks of a gone agent not dealt with", "agent", name, "error", err)
		}
	}
}
