package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/browser"
)

// frames is put into a page to note the time between two frames.
const frames = `
window.gaps = [];
(() => { let last = 0; const look = (at) => { if (last) gaps.push(at - last); last = at; requestAnimationFrame(look); }; requestAnimationFrame(look); })();`

// sample is what one round saw.
type sample struct {
	busy float64 // share of the main thread, percent
	p99  float64 // of the time between two frames, ms
	news float64 // tasks with news that the page was told of, a second
}

// load measures the page of the tasks and its control, in turns.
func (b *bench) load(ctx context.Context) error {
	play := newPlay(b.rows, b.rate)
	server := httptest.NewServer(play.handler())
	defer server.Close()
	playing, stop := context.WithCancel(ctx)
	defer stop()
	go play.run(playing)
	defer server.CloseClientConnections()
	var ours, control []sample
	for n := range b.rounds {
		for _, side := range []struct {
			name, path, ready string
			into              *[]sample
		}{
			{"the page", "/ui/tasks", allFetched(b.rows), &ours},
			{"the control", "/plain", fmt.Sprintf(`document.querySelectorAll("tr").length === %d`, b.rows), &control},
		} {
			s, err := b.watch(ctx, play, server.URL+side.path, side.ready)
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			*side.into = append(*side.into, s)
			fmt.Printf("round %d of %d, %s: %.1f %% busy, p99 of frames %.1f ms, %.0f tasks with news a second\n", n+1, b.rounds, side.name, s.busy, s.p99, s.news)
		}
	}
	what := fmt.Sprintf("%d tasks, %d with news a second", b.rows, b.rate)
	busy, p99 := median(ours, func(s sample) float64 { return s.busy }), median(ours, func(s sample) float64 { return s.p99 })
	b.add("main thread, page of the tasks", busy, "%", "< 15 %", is(busy < 15), what)
	b.add("main thread, a plain table that is written at once", median(control, func(s sample) float64 { return s.busy }), "%", "", nil, "control")
	b.add("time between two frames, p99, page of the tasks", p99, "ms", "< 100 ms", is(p99 < 100), "")
	b.add("time between two frames, p99, a plain table", median(control, func(s sample) float64 { return s.p99 }), "ms", "", nil, "control")
	return nil
}

// allFetched scrolls down until all rows are there, and is true then. Then the
// page is at its top again.
func allFetched(rows int) string {
	return fmt.Sprintf(`(() => {
		const table = document.querySelector('[aria-rowcount="%d"]');
		if (table) { if (scrollY > 0) scrollTo(0, 0); else return true; } else scrollTo(0, document.documentElement.scrollHeight);
		return false; })()`, rows+1)
}

// watch looks at a page for a while.
func (b *bench) watch(ctx context.Context, play *play, address, ready string) (s sample, err error) {
	page, err := b.browser.Open(browser.Look{Script: frames})
	if err != nil {
		return s, err
	}
	defer page.Close()
	if err := page.Go(address); err != nil {
		return s, err
	}
	if err := page.Until(ready); err != nil {
		return s, err
	}
	if err := sleep(ctx, time.Second); err != nil { // what belongs to the start has ended
		return s, err
	}
	if err := page.Ask("(gaps.length = 0, 1)", new(int)); err != nil {
		return s, err
	}
	before, err := page.Busy()
	if err != nil {
		return s, err
	}
	began, told := time.Now(), play.told.Load()
	if err := sleep(ctx, b.span); err != nil {
		return s, err
	}
	after, err := page.Busy()
	if err != nil {
		return s, err
	}
	took := time.Since(began)
	var gaps []float64
	if err := page.Ask("gaps", &gaps); err != nil {
		return s, err
	}
	slices.Sort(gaps)
	if len(gaps) == 0 {
		return s, fmt.Errorf("no frame was drawn")
	}
	return sample{
		busy: 100 * float64(after-before) / float64(took), p99: gaps[(len(gaps)-1)*99/100],
		news: float64(play.told.Load()-told) / took.Seconds(),
	}, nil
}

func median(all []sample, of func(sample) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
