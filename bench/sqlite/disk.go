package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// disk measures how many times a second size bytes can be written and synced, either
// always at the same place or appended.
func disk(name string, size int, behind bool) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		return func(context.Context) (measure.Values, error) {
			path := filepath.Join(b.Dir, "fdatasync")
			defer os.Remove(path)
			return syncs(path, size, behind, b.Span)
		}, nil
	}}
}

func syncs(path string, size int, behind bool, span time.Duration) (measure.Values, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	block := make([]byte, size)
	if _, err := f.Write(block); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	var took []time.Duration
	at, start := int64(0), time.Now()
	for last := start; last.Sub(start) < span; {
		if behind {
			at += int64(size)
		}
		block[0]++
		if _, err := f.WriteAt(block, at); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	v := load.Spread(took)
	v[load.Rate] = float64(len(took)) / time.Since(start).Seconds()
	return v, nil
}
