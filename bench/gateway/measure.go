package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/bench/internal/figures"
)

const (
	modernEra = "2026-07-28"
	legacyEra = "2025-11-25"
	// allowed is what the gateway may add, in ms; or as much again as the
	// SDK's own call costs, if that is more.
	allowed = 0.5
	// side is how many call at once where many do.
	side = 16
)

func measure(ctx context.Context, dir string, rounds, calls int) ([]figures.Figure, error) {
	work, err := os.MkdirTemp(dir, "signalbox-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	b := &bench{dir: work, rounds: rounds, calls: calls}
	upstream := newUpstream()
	defer upstream.Close()
	defer upstream.CloseClientConnections() // streams of the legacy era would hold it
	d, err := b.start(ctx, upstream.URL)
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	for _, era := range []string{modernEra, legacyEra} {
		if err := b.era(ctx, upstream.URL, d.URL, era); err != nil {
			return nil, err
		}
	}
	return b.figures, nil
}

// call makes one call and fails unless it was answered.
type call func(ctx context.Context) error

// era measures the calls of clients of one protocol version.
func (b *bench) era(ctx context.Context, upstream, director, version string) error {
	direct, endDirect, err := connect(ctx, upstream, version, "echo")
	if err != nil {
		return err
	}
	defer endDirect()
	through, endThrough, err := connect(ctx, director+"/mcp", version, "s__echo")
	if err != nil {
		return err
	}
	defer endThrough()
	rest := restCall(director + "/api/tools/s__echo/call")

	var plain, gone, asked, added, addedRest, plainMany, goneMany [][2]float64
	for i := range b.rounds + 1 {
		figures := make([][2]float64, 0, 5)
		for _, c := range []struct {
			call call
			side int
		}{{direct, 1}, {through, 1}, {rest, 1}, {direct, side}, {through, side}} {
			ms, err := times(ctx, c.call, b.calls, c.side)
			if err != nil {
				return err
			}
			figures = append(figures, [2]float64{quantile(ms, 0.5), quantile(ms, 0.99)})
		}
		if i == 0 {
			continue // connections and caches were cold
		}
		plain, gone, asked = append(plain, figures[0]), append(gone, figures[1]), append(asked, figures[2])
		plainMany, goneMany = append(plainMany, figures[3]), append(goneMany, figures[4])
		added = append(added, [2]float64{figures[1][0] - figures[0][0], figures[1][1] - figures[0][1]})
		addedRest = append(addedRest, [2]float64{figures[2][0] - figures[0][0]})
	}
	name := func(s string) string { return "MCP " + version + ", " + s }
	b.pair(name("direct"), plain)
	b.pair(name("through the gateway"), gone)
	most := max(allowed, median(plain, 0))
	target := fmt.Sprintf("≤ %.3f ms: 0.5 ms, or the direct call's own time if that is more", most)
	extra := median(added, 0)
	b.add(name("added by the gateway, p50"), extra, "ms", target, is(extra <= most), fmt.Sprintf("%d calls", b.rounds*b.calls))
	b.add(name("added by the gateway, p99"), median(added, 1), "ms", "", nil, "")
	b.pair(name(fmt.Sprintf("direct, %d side by side", side)), plainMany)
	b.pair(name(fmt.Sprintf("through the gateway, %d side by side", side)), goneMany)
	if version == modernEra {
		b.pair("POST /api/tools/{tool}/call through the gateway", asked)
		b.add("POST /api/tools/{tool}/call over the direct call by MCP, p50", median(addedRest, 0), "ms", "", nil, "")
	}
	return nil
}

func (b *bench) pair(name string, rounds [][2]float64) {
	b.add(name+", p50", median(rounds, 0), "ms", "", nil, "")
	b.add(name+", p99", median(rounds, 1), "ms", "", nil, "")
}

// connect returns calls by an SDK client that speaks one protocol version. It
// waits until the tool is there: servers are connected in the background.
func connect(ctx context.Context, url, version, tool string) (call, func(), error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * side}}
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: h, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", url, err)
	}
	end := func() {
		_ = s.Close()
		h.CloseIdleConnections()
	}
	if got := s.InitializeResult().ProtocolVersion; got != version {
		end()
		return nil, nil, fmt.Errorf("%s speaks %s, not %s", url, got, version)
	}
	one := func(ctx context.Context) error {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: said{"hello"}})
		if err != nil {
			return err
		}
		if text, ok := r.Content[0].(*mcp.TextContent); !ok || text.Text != "hello" || r.IsError {
			return fmt.Errorf("%s answered %+v", tool, r.Content)
		}
		return nil
	}
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = one(ctx); err == nil {
			return one, end, nil
		}
		if time.Now().After(limit) {
			end()
			return nil, nil, fmt.Errorf("%s: %w", url, err)
		}
	}
}

// restCall returns calls by POST /api/tools/{tool}/call.
func restCall(url string) call {
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: side}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(`{"arguments":{"text":"hello"}}`)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := h.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("hello"))) {
			err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
		}
		return err
	}
}

// times makes n calls, some of them side by side, and returns how many ms each
// took.
func times(ctx context.Context, one call, n, side int) ([]float64, error) {
	type took struct {
		ms  []float64
		err error
	}
	results := make(chan took, side)
	for range side {
		go func() {
			var t took
			for range n / side {
				begin := time.Now()
				if t.err = one(ctx); t.err != nil {
					break
				}
				t.ms = append(t.ms, float64(time.Since(begin).Nanoseconds())/1e6)
			}
			results <- t
		}()
	}
	var all []float64
	var err error
	for range side {
		t := <-results
		all = append(all, t.ms...)
		if t.err != nil {
			err = t.err
		}
	}
	if len(all) == 0 && err == nil {
		err = fmt.Errorf("%d calls are too few for %d side by side", n, side)
	}
	return all, err
}

func is(met bool) *bool { return &met }

// median is that of the p50s (which 0) or the p99s (which 1) of all rounds.
func median(rounds [][2]float64, which int) float64 {
	v := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		v = append(v, r[which])
	}
	return quantile(v, 0.5)
}

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}
