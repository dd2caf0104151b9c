package live

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// What tests need to see of the projection.

const (
	MaxChanges   = maxChanges
	RefreshEvery = refreshEvery
)

// RefreshExactly takes a look now, at what was announced and at the estimates: at no
// agent because its turn has come.
func (p *Projection) RefreshExactly(ctx context.Context) error {
	p.refreshing.Lock()
	p.builder.turnedAt, p.builder.estimatedAt = time.Now().Add(time.Hour), time.Time{}
	p.refreshing.Unlock()
	return p.Refresh(ctx)
}

// RefreshAfterASecond takes a look now, as the next one that is taken though nothing
// was announced.
func (p *Projection) RefreshAfterASecond(ctx context.Context) error {
	p.refreshing.Lock()
	p.builder.turnedAt, p.builder.estimatedAt = time.Time{}, time.Time{}
	p.refreshing.Unlock()
	return p.Refresh(ctx)
}

// Figures are those of the whole, and the verdict.
func (p *Projection) Figures() (api.Totals, api.Verdict) {
	verdict := p.verdict(signalbox.Principal{})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.totals, verdict
}

// Shown is what the stream shows, by key, as JSON.
func (p *Projection) Shown() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := map[string]string{}
	for key, e := range p.shown {
		shown[key] = string(e.data)
	}
	return shown
}

// Running reports whether the loop that looks for readers runs.
func (p *Projection) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop != nil
}
