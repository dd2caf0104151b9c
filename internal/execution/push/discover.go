package push

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// The seed's discovery: ports of the loopback interface are asked every
// second, each with a timeout of 500 ms.
const (
	discoverEvery   = time.Second
	discoverTimeout = 500 * time.Millisecond
)

// Ports is a range of ports to scan for agents, both ends included.
type Ports struct{ First, Last int }

// Discover scans a range of loopback ports for unregistered agents, until ctx ends. Other
// addresses are never scanned.
func (d *Dispatcher) Discover(ctx context.Context, ports Ports) {
	tick := time.NewTicker(discoverEvery)
	defer tick.Stop()
	for {
		d.scan(ctx, ports)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// scan probes every port that no known agent uses, up to 16 at a time.
func (d *Dispatcher) scan(ctx context.Context, ports Ports) {
	known := map[string]bool{}
	d.Mu.Lock()
	for _, l := range d.Order {
		known[strings.Replace(l.Row.URL, "//localhost:", "//127.0.0.1:", 1)] = true
	}
	d.Mu.Unlock()
	var group sync.WaitGroup
	places := make(chan struct{}, 16)
	for port := ports.First; port <= ports.Last && ctx.Err() == nil; port++ {
		url := "http://127.0.0.1:" + strconv.Itoa(port)
		if known[url] {
			continue
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			d.scanOne(ctx, url, port)
		})
	}
	group.Wait()
}

func (d *Dispatcher) scanOne(ctx context.Context, url string, port int) {
	s, err := newConn(url, "", discoverTimeout, d.opts.Transport).status(ctx)
	if err != nil || s.Type != "agent" {
		return
	}
	a := signalbox.Agent{
		Name: cmp.Or(s.Name, fmt.Sprintf("agent-%d", port)), Kind: cmp.Or(s.AgentKind, signalbox.KindUnknown), URL: url,
		Slots: s.Slots, Fencing: s.Fencing, Source: signalbox.AgentDiscovered, Version: s.Version, WorkDir: s.WorkDir,
	}
	d.Mu.Lock()
	l := d.Lanes[a.Name]
	taken := l != nil && (l.Presence.Up() || l.Row.Source != signalbox.AgentDiscovered)
	d.Mu.Unlock()
	if taken {
		return // another agent has the name, or it was registered by someone
	}
	if _, err := d.Engine.PutAgent(ctx, a, ""); err != nil {
		d.Log.Warn("agent found but not registered", "url", url, "error", err)
		return
	}
	d.Log.Info("", "agent", "discovered", "name", a.Name, "url", url, "kind", a.Kind)
}
