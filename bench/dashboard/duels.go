// Package dashboard measures the cost of the dashboard in a browser, headless
// Chromium, and makes the screenshots of the documentation.
//
// Under load: the real pages with a simulated director that answers like a real one.
// It has a number of running tasks, some of which change each second, and sends the
// changes in five batches a second. The control is a plain table that writes each
// change at once.
//
// The first page: the real binary, through a proxy that counts bytes for the size, and
// without it for the time.
package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/browser"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Group is the pages.
var Group = measure.Group{Name: "dashboard", Duels: duels}

const (
	rows  = 1000 // tasks that run
	rate  = 200  // tasks with news in a second
	loads = 3    // of the first page in a round

	agents = 500 // half of them work
)

// Names of the values.
const (
	busy        = "busy"        // percent of the main thread
	frame       = "frame"       // p99 of the time between two, ms
	size        = "size"        // kB over the wire
	interactive = "interactive" // ms
)

func duels(*measure.Bench) []*measure.Duel {
	r := &rig{}
	const plainTable = "a plain table"
	control := r.side(plainTable, func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		return r.watching(b, "/plain", fmt.Sprintf(`document.querySelectorAll("tr").length === %d`, rows)), nil
	})
	return []*measure.Duel{
		{
			Name: "dashboard/load", Peers: []*measure.Side{control},
			Ours: r.side("Signalbox", func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
				return r.watching(b, "/ui/tasks", allFetched(rows)), nil
			}),
			Rows: []measure.Row{
				{ID: "busy", Key: busy, Title: "main thread busy, page of 1,000 tasks, 200 changing per second", Unit: "%", Lower: true, Target: measure.Target{AtMost: 8}},
				{ID: "frame", Key: frame, Title: "time between two frames there, p99", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 100}},
			},
		}, {
			Name: "dashboard/lanes",
			Ours: r.side("Signalbox", func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
				return r.watching(b, "/ui/", `document.querySelectorAll(".card-lanes .lane").length >= 20`), nil
			}),
			Rows: []measure.Row{
				{ID: "busy", Key: busy, Title: "main thread busy, first page with 500 agents and 1,000 tasks, 200 changing per second", Unit: "%", Lower: true, Target: measure.Target{AtMost: 8}},
				{ID: "frame", Key: frame, Title: "time between two frames there, p99", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 100}},
			},
		}, {
			Name: "dashboard/first", Ours: r.side("Signalbox", r.firstPage), Rows: []measure.Row{
				{ID: "size", Key: size, Title: "first page until it is interactive, over the wire, both ways with headers", Unit: "kB", Lower: true, Target: measure.Target{AtMost: 150}},
				{ID: "time", Key: interactive, Title: "first page, interactive after, nothing cached", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 500}},
			},
		},
	}
}

// rig is the shared state of the sides.
type rig struct {
	dir     string
	binary  string
	browser *browser.Browser
	play    *play
	url     string // of the play
}

// side returns a side that needs a browser; it is skipped without one.
func (r *rig) side(name string, open func(context.Context, *measure.Bench) (measure.Trial, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if _, err := exec.LookPath("chromium"); err != nil {
			fmt.Fprintln(os.Stderr, "no chromium (make setup installs it): the figures of the pages are skipped")
			return func(context.Context) (measure.Values, error) { return measure.Values{}, nil }, nil
		}
		if r.browser == nil {
			if err := r.start(ctx, b.Dir, b.Bin); err != nil {
				return nil, err
			}
			b.Cleanup(r.browser.Stop)
		}
		return open(ctx, b)
	}}
}

func (r *rig) start(ctx context.Context, dir, bin string) (err error) {
	r.dir = dir
	if r.binary, err = director.Build(ctx, bin); err != nil {
		return err
	}
	r.browser, err = browser.Start(ctx, dir)
	return err
}

// Shoot writes the screenshots of the documentation into a folder.
func Shoot(ctx context.Context, folder string) error {
	dir, err := os.MkdirTemp("", "signalbox-pages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &rig{}
	if err := r.start(ctx, dir, dir); err != nil {
		return err
	}
	defer r.browser.Stop()
	return r.shoot(ctx, folder)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
