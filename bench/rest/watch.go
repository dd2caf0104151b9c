package rest

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Names of the values, in addition to load.RSS.
const (
	share = "share" // percent of a core
	beats = "beats" // answered heartbeats per minute
	asked = "asked" // requests to agents per minute
)

// watched is a process with its counters.
type watched struct {
	pid   int
	count func() (beats, asked int64)
	seen  int // periods that its side has used
}

// stretches are the periods in which all processes are measured. The first side of a
// round that requests the next period waits for its end; the others get their values
// of the same period.
type stretches struct {
	all  []*watched
	done [][]measure.Values // by stretch, by process
}

// side is one process.
func (s *stretches) side(name string, start func(ctx context.Context, b *measure.Bench) (*watched, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		w, err := start(ctx, b)
		if err != nil {
			return nil, err
		}
		at := len(s.all)
		s.all = append(s.all, w)
		return func(ctx context.Context) (measure.Values, error) {
			if w.seen == len(s.done) {
				if err := s.look(ctx, 20*b.Span); err != nil {
					return nil, err
				}
			}
			w.seen++
			return s.done[w.seen-1][at], nil
		}, nil
	}}
}

// look waits for a period and records the values.
func (s *stretches) look(ctx context.Context, length time.Duration) error {
	type state struct {
		cpu          float64
		beats, asked int64
	}
	now := func() (out []state, err error) {
		for _, w := range s.all {
			var st state
			if st.cpu, err = director.CPUTime(w.pid); err != nil {
				return nil, err
			}
			if w.count != nil {
				st.beats, st.asked = w.count()
			}
			out = append(out, st)
		}
		return out, nil
	}
	before, err := now()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := sleep(ctx, length); err != nil {
		return err
	}
	after, err := now()
	if err != nil {
		return err
	}
	took := time.Since(began)
	var out []measure.Values
	for i, w := range s.all {
		held, err := director.RSS(w.pid)
		if err != nil {
			return err
		}
		out = append(out, measure.Values{
			share: 100 * (after[i].cpu - before[i].cpu) / took.Seconds(), load.RSS: float64(held) / (1 << 20),
			beats: float64(after[i].beats-before[i].beats) / took.Minutes(), asked: float64(after[i].asked-before[i].asked) / took.Minutes(),
		})
	}
	s.done = append(s.done, out)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
