package live

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

const (
	MaxDeltas    = maxDeltas
	RefreshEvery = refreshEvery
)

// RefreshUnpolled refreshes the view and compares the ETAs, but polls no agents.
func (p *Projection) RefreshUnpolled(ctx context.Context) error {
	p.refreshMu.Lock()
	p.builder.polledAt, p.builder.etasCheckedAt = time.Now().Add(time.Hour), time.Time{}
	p.refreshMu.Unlock()
	return p.Refresh(ctx)
}

// RefreshPolled refreshes the view like a refresh after pollEvery and etasEvery: it polls agents
// and compares the ETAs.
func (p *Projection) RefreshPolled(ctx context.Context) error {
	p.refreshMu.Lock()
	p.builder.polledAt, p.builder.etasCheckedAt = time.Time{}, time.Time{}
	p.refreshMu.Unlock()
	return p.Refresh(ctx)
}

// TotalsAndVerdict returns the totals and the verdict of the last refresh.
func (p *Projection) TotalsAndVerdict() (api.Totals, api.Verdict) {
	verdict := p.verdict(signalbox.Principal{})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.totals, verdict
}

// Entities returns the JSON of the current entities, by key.
func (p *Projection) Entities() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	entities := map[string]string{}
	for key, e := range p.entities {
		entities[key] = string(e.data)
	}
	return entities
}

// Running reports whether the refresh loop runs.
func (p *Projection) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop != nil
}

// ForgetSchedules makes the next refresh read the schedules.
func (p *Projection) ForgetSchedules() {
	p.refreshMu.Lock()
	defer p.refreshMu.Unlock()
	p.builder.schedules.dirty, p.builder.schedules.nextRead = true, time.Time{}
}
