package httpapi

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// What tests need to see of the live stream.

const (
	MaxChanges = maxChanges
	LookEvery  = lookEvery
)

// Look takes a look now, at what has changed.
func (d *Server) Look(ctx context.Context) error { return d.projection.look(ctx) }

// LookExactly takes a look now, at what was announced and at the estimates: at no
// agent because its turn has come.
func (d *Server) LookExactly(ctx context.Context) error {
	b := &d.projection.builder
	d.projection.looking.Lock()
	b.turned, b.figured = time.Now().Add(time.Hour), time.Time{}
	d.projection.looking.Unlock()
	return d.projection.look(ctx)
}

// LookAfterASecond takes a look now, as the next one that is taken though nothing
// was announced.
func (d *Server) LookAfterASecond(ctx context.Context) error {
	b := &d.projection.builder
	d.projection.looking.Lock()
	b.turned, b.figured = time.Time{}, time.Time{}
	d.projection.looking.Unlock()
	return d.projection.look(ctx)
}

// Figures are those of the whole, and the verdict.
func (d *Server) Figures() (api.Totals, api.Verdict) {
	verdict := d.projection.verdict(signalbox.Principal{})
	d.projection.mu.Lock()
	defer d.projection.mu.Unlock()
	return d.projection.whole.totals, verdict
}

// Shown is what the stream shows, by key, as JSON.
func (d *Server) Shown() map[string]string {
	d.projection.mu.Lock()
	defer d.projection.mu.Unlock()
	shown := map[string]string{}
	for key, e := range d.projection.shown {
		shown[key] = string(e.data)
	}
	return shown
}

// Looks reports whether the loop that looks for readers runs.
func (d *Server) Looks() bool {
	d.projection.mu.Lock()
	defer d.projection.mu.Unlock()
	return d.projection.stop != nil
}

// LookOnlyWhenAsked has no looks taken by the clock while nobody reads.
func (d *Server) LookOnlyWhenAsked() {
	d.projection.mu.Lock()
	defer d.projection.mu.Unlock()
	if d.projection.alone == nil {
		d.projection.alone = time.NewTimer(0)
	}
	d.projection.alone.Stop()
}

// SetPlace makes the stream stand at a place that is the same in every run.
func (d *Server) SetPlace(epoch string, revision int64) {
	p := &d.projection
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.revision, p.changes, p.full = epoch, revision, nil, nil
}
