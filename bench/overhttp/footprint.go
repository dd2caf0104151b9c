package overhttp

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/bench/internal/tiny"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// The values of a footprint: of a start with an empty data folder, and of one with many
// waiting tasks.
const (
	ready     = "ready" // ms from exec to the first answer
	readyFull = "ready-full"
	rssFull   = "memory-full"
	perTask   = "per-task" // bytes of memory per waiting task
	size      = "size"     // MB of the binary
	many      = 100_000
)

// footprint starts directors.
func footprint(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		binary, err := director.Build(ctx, b.Bin)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return nil, err
		}
		full := filepath.Join(b.Dir, "full")
		if err := fill(ctx, full, b.Scale(many)); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			empty, base, err := startUp(ctx, b, filepath.Join(b.Dir, fmt.Sprintf("empty-%d", folders.Add(1))))
			if err != nil {
				return nil, err
			}
			laden, held, err := startUp(ctx, b, full)
			return measure.Values{
				ready: empty, readyFull: laden, load.RSS: base / (1 << 20), rssFull: held / (1 << 20),
				perTask: (held - base) / float64(b.Scale(many)), size: float64(info.Size()) / 1e6,
			}, err
		}, nil
	}}
}

// fill stores waiting tasks in a data folder.
func fill(ctx context.Context, data string, n int) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(data, "signalbox.db")})
	if err != nil {
		return err
	}
	err = load.Many(n, func(int) error { return ours.Submit(ctx, s, nil) })
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}

// startUp returns the time in ms from the start to the first answer, and the memory of
// the process after a request for its queue.
func startUp(ctx context.Context, b *measure.Bench, data string) (ms, rss float64, err error) {
	began := time.Now()
	d, err := startOn(ctx, b, data)
	if err != nil {
		return 0, 0, err
	}
	defer d.Stop()
	if err := ask(ctx, d.URL+"/healthz"); err != nil {
		return 0, 0, err
	}
	ms = float64(time.Since(began).Microseconds()) / 1000
	if err := ask(ctx, d.URL+"/api/queue"); err != nil {
		return 0, 0, err
	}
	held, err := director.RSS(d.PID())
	return ms, float64(held), err
}

func ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// smallest measures the footprint of a program with only a peer and one worker.
func smallest(name, folder string, where func(b *measure.Bench) string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		binary, err := tiny.Build(ctx, b.Bin, folder)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return nil, err
		}
		at := where(b)
		return func(ctx context.Context) (measure.Values, error) {
			began := time.Now()
			p, err := tiny.Start(ctx, binary, at)
			if err != nil {
				return nil, err
			}
			defer p.Stop()
			v := measure.Values{ready: float64(time.Since(began).Microseconds()) / 1000, size: float64(info.Size()) / 1e6}
			held, err := director.RSS(p.PID())
			v[load.RSS] = float64(held) / (1 << 20)
			return v, err
		}, nil
	}}
}

// bareStart is the limit: the same binary prints its version.
func bareStart(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		binary, err := director.Build(ctx, b.Bin)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			began := time.Now()
			err := exec.CommandContext(ctx, binary, "version").Run()
			return measure.Values{ready: float64(time.Since(began).Microseconds()) / 1000}, err
		}, nil
	}}
}
