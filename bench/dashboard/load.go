package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/browser"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// frames records the times between frames from then on. It draws every frame, which the
// page itself does not, so it starts after the load of the main thread was measured.
const frames = `(() => {
	window.gaps = [];
	let last = 0;
	const look = (at) => { if (last) gaps.push(at - last); last = at; requestAnimationFrame(look); };
	requestAnimationFrame(look);
	return 1;
})()`

// watching measures a page of the play in each round.
func (r *rig) watching(b *measure.Bench, path, ready string) measure.Trial {
	if r.play == nil {
		r.play = newPlay(rows, rate, agents)
		server := httptest.NewServer(r.play.handler())
		playing, stop := context.WithCancel(context.Background())
		go r.play.run(playing)
		b.Cleanup(func() {
			stop()
			server.CloseClientConnections()
			server.Close()
		})
		r.url = server.URL
	}
	return func(ctx context.Context) (measure.Values, error) { return r.watch(ctx, r.url+path, ready, 7*b.Span) }
}

// allFetched scrolls down until all rows are loaded, and is then true. The page is at its
// top again then.
func allFetched(rows int) string {
	return fmt.Sprintf(`(() => {
		const table = document.querySelector('[aria-rowcount="%d"]');
		if (table) { if (scrollY > 0) scrollTo(0, 0); else return true; } else scrollTo(0, document.documentElement.scrollHeight);
		return false; })()`, rows+1)
}

// watch measures a page for a while, twice.
func (r *rig) watch(ctx context.Context, address, ready string, span time.Duration) (measure.Values, error) {
	page, err := r.browser.Open(browser.Look{})
	if err != nil {
		return nil, err
	}
	defer page.Close()
	if err := page.Go(address); err != nil {
		return nil, err
	}
	if err := page.Until(ready); err != nil {
		return nil, err
	}
	if err := sleep(ctx, time.Second); err != nil { // let the start finish
		return nil, err
	}
	before, err := page.Busy()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := sleep(ctx, span); err != nil {
		return nil, err
	}
	after, err := page.Busy()
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := page.Ask(frames, new(int)); err != nil {
		return nil, err
	}
	if err := sleep(ctx, span); err != nil {
		return nil, err
	}
	var gaps []float64
	if err := page.Ask("gaps", &gaps); err != nil {
		return nil, err
	}
	slices.Sort(gaps)
	if len(gaps) == 0 {
		return nil, errors.New("no frame was drawn")
	}
	return measure.Values{busy: 100 * float64(after-before) / float64(took), frame: gaps[(len(gaps)-1)*99/100]}, nil
}
