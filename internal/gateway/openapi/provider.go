package openapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Options configure a Provider. The zero value is valid.
type Options struct {
	Log   *slog.Logger
	Retry time.Duration // delay before a description at a URL is loaded again; doubled up to maxRetry. 0: 2 s
}

const (
	firstRetry = 2 * time.Second
	maxRetry   = 5 * time.Minute
	loadTime   = time.Minute // bounds the loading of a description
)

// Provider has the tools of one description. Make one with New.
//
//	file: Start ─▶ ready, or an error        URL: Start ─▶ starting ─▶ ready
//	                                                          │  ▲
//	                                                          ▼  │ after a while
//	                                                         failed
type Provider struct {
	*rest.Actions
	conf toolconf.OpenAPI
	o    Options

	mu   sync.Mutex
	stop context.CancelFunc
	done chan struct{} // closed when the retries have ended; nil: none
}

var (
	_ gateway.Provider = (*Provider)(nil)
	_ gateway.Checker  = (*Provider)(nil)
)

// New makes a Provider. It reads nothing; Start does.
func New(c toolconf.OpenAPI, o Options) *Provider {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retry <= 0 {
		o.Retry = firstRetry
	}
	return &Provider{Actions: rest.NewActions(c.Name, gateway.KindOpenAPI), conf: c, o: o, stop: func() {}}
}

// Start loads the description. A file is loaded at once, and an invalid one is an error. A URL
// is loaded in the background and retried.
func (p *Provider) Start(ctx context.Context, changed func()) error {
	s, err := newSource(ctx, p.conf)
	if err != nil {
		return configError(p.conf, err)
	}
	defer s.close()
	if s.where == nil {
		return p.load(ctx)
	}
	if _, err := newHosts(p.conf, s.where); err != nil {
		return configError(p.conf, err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	p.mu.Lock()
	p.stop, p.done = stop, done
	p.mu.Unlock()
	go func() {
		defer close(done)
		p.retry(ctx, changed)
	}()
	return nil
}

func (p *Provider) retry(ctx context.Context, changed func()) {
	for wait := p.o.Retry; ; wait = min(2*wait, maxRetry) {
		err := p.load(ctx)
		if err == nil {
			changed()
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.o.Log.Warn("the description of tools cannot be used yet", "server", p.conf.Name, "error", err, "again_in", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// load loads the description and sets the tools.
func (p *Provider) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	d, err := Load(ctx, p.conf)
	if err != nil {
		p.Failed(err)
		return err
	}
	for i, w := range d.Warnings {
		if i == maxErrors {
			p.o.Log.Warn("the description of tools is used in part", "server", p.conf.Name, "more_reasons", len(d.Warnings)-i)
			break
		}
		p.o.Log.Warn("the description of tools is used in part", "server", p.conf.Name, "reason", w)
	}
	for _, a := range d.Actions {
		a.Secrets = p.conf.Secrets
	}
	if !p.Ready(d.Reach, d.Actions) {
		return errors.New("it is stopped")
	}
	return nil
}

// Close ends all calls, connections and retries.
func (p *Provider) Close() error {
	p.mu.Lock()
	stop, done := p.stop, p.done
	p.mu.Unlock()
	err := p.Actions.Close() // first, so that a description that is being read is discarded
	stop()
	if done != nil {
		<-done
	}
	return err
}
