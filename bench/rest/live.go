package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Names of the costs of a reader.
const (
	viewed = "viewed" // ms of processor time per second
	sent   = "sent"   // kB per second
)

// live measures the cost of a reader of GET /api/live at a director with agents: the
// processor time of a period with a reader, minus that of the period before without
// one.
func live() *measure.Side {
	return &measure.Side{Name: "Signalbox", Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		w, url, err := crowdAt(ctx, b, "viewed")
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			without, err := spent(ctx, w.pid, 20*b.Span)
			if err != nil {
				return nil, err
			}
			v := &viewer{}
			if err := v.open(ctx, url); err != nil {
				return nil, err
			}
			defer v.close()
			before := v.bytes.Load()
			with, err := spent(ctx, w.pid, 20*b.Span)
			if err != nil {
				return nil, err
			}
			return measure.Values{viewed: 1000 * (with - without), sent: float64(v.bytes.Load()-before) / 1000 / (20 * b.Span).Seconds()}, nil
		}, nil
	}}
}

// spent returns the processor time that a process uses per second, over a period.
func spent(ctx context.Context, pid int, length time.Duration) (float64, error) {
	before, err := director.CPUTime(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := sleep(ctx, length); err != nil {
		return 0, err
	}
	after, err := director.CPUTime(pid)
	return (after - before) / time.Since(began).Seconds(), err
}

// viewer reads the live stream.
type viewer struct {
	bytes  atomic.Int64
	cancel context.CancelFunc
	done   chan struct{}
}

// open returns when the snapshot has arrived, which is not measured.
func (v *viewer) open(ctx context.Context, url string) error {
	ctx, v.cancel = context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/live", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("GET /api/live: %s", resp.Status)
	}
	came := make(chan struct{})
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		defer func() { _ = resp.Body.Close() }()
		body, events := bufio.NewReaderSize(resp.Body, 1<<16), 0
		for {
			line, err := body.ReadSlice('\n')
			v.bytes.Add(int64(len(line)))
			if len(line) == 1 {
				if events++; events == 2 { // after the reconnection time, the snapshot
					close(came)
				}
			}
			if err != nil && err != bufio.ErrBufferFull {
				if err != io.EOF && events < 2 {
					close(came)
				}
				return
			}
		}
	}()
	select {
	case <-came:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *viewer) close() {
	v.cancel()
	<-v.done
}
