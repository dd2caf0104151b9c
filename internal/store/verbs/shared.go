package verbs

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Time is the time by the server's clock, to the millisecond.
func (s *Shared) Time(ctx context.Context) (time.Time, error) {
	at, err := readFrom(ctx, s.Store, func(ctx context.Context) (time.Time, error) { return s.shared.Time(ctx) })
	return time.UnixMilli(at.UnixMilli()).UTC(), err
}

// Generation grows when the server turns out to have lost what it had
// acknowledged.
func (s *Shared) Generation() int64 { return s.generation.Load() }

// Changed gets a sign when another process may have changed something.
func (s *Shared) Changed() <-chan struct{} { return s.shared.Changed() }

// Others returns journal entries that other processes wrote.
func (s *Shared) Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error) {
	rows, err := s.entries(ctx, after, limit)
	if err != nil {
		return nil, after, err
	}
	through = after
	for i := range rows {
		through = rows[i].Seq
		if rows[i].Writer != s.opts.Writer {
			entries = append(entries, rows[i].Entry)
		}
	}
	return entries, through, nil
}
