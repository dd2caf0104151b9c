// Package gateway measures the overhead of the gateway for a tool call: an MCP client
// calls a tool of an MCP server over streamable HTTP, directly and through /mcp of a
// real director, in turns. Client and server are from the official SDK and run in
// this process; the director is the real binary, with a store on the measured disk.
package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Group is tool calls through the gateway.
var Group = measure.Group{Name: "gateway", Duels: duels}

const (
	modernEra = "2026-07-28"
	legacyEra = "2025-11-25"
	// allowed is the allowed overhead of the gateway, in ms.
	allowed = 0.4
	// side is the number of concurrent callers in the figures with many.
	side   = 16
	direct = "directly"
	// oneInFlight is the side with which a crowded agent is compared.
	oneInFlight = "an agent with one task in flight"
)

func duels(*measure.Bench) (out []*measure.Duel) {
	r := &rig{}
	for _, version := range []string{modernEra, legacyEra} {
		name, title := map[string]string{modernEra: "gateway/mcp", legacyEra: "gateway/mcp-2025"}[version], "a tool call by MCP "+version
		plain := r.side(direct, 1, r.plain(version))
		out = append(out,
			&measure.Duel{Name: name, Ours: r.side("through the gateway", 1, r.through(version)), Peers: []*measure.Side{plain}, Rows: []measure.Row{
				{ID: "p50", Key: load.P50, Title: title + ", added by the gateway, median", Unit: "ms", Lower: true, Delta: true, Target: measure.Target{Of: direct, AtMost: allowed}},
				{ID: "p99", Key: load.P99, Title: title + ", added by the gateway, p99", Unit: "ms", Lower: true, Delta: true, Detail: true},
			}},
			&measure.Duel{Name: name + "-16", Ours: r.side("through the gateway", side, r.through(version)), Peers: []*measure.Side{r.side(direct, side, r.plain(version))}, Rows: []measure.Row{
				{ID: "p50", Key: load.P50, Title: title + ", 16 concurrent, median", Unit: "ms", Lower: true, Delta: true, Detail: true},
				{ID: "rate", Key: load.Rate, Title: title + ", 16 concurrent", Unit: "/s", Detail: true},
			}},
		)
		if version == modernEra {
			out = append(out, &measure.Duel{Name: "gateway/rest", Ours: r.side("POST /api/tools/{tool}/call", 1, r.rest), Peers: []*measure.Side{plain}, Rows: []measure.Row{
				{ID: "p50", Key: load.P50, Title: "a tool call by HTTP through the gateway, compared with direct MCP, median", Unit: "ms", Lower: true, Delta: true},
			}})
		}
	}
	return append(out, &measure.Duel{
		Name: "gateway/in-flight", Ours: r.side("an agent with 1,000 tasks in flight", 1, r.crowded(inFlight)),
		Peers: []*measure.Side{r.side(oneInFlight, 1, r.crowded(1))}, Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "a tool call by an agent with 1,000 tasks in flight, compared with one with a single task, median", Unit: "ms", Lower: true, Delta: true, Target: measure.Target{Of: oneInFlight, AtMost: 0.1}},
		},
	})
}

// call makes one call and fails unless it was answered.
type call func(ctx context.Context) error

// side returns a side with a number of callers.
func (r *rig) side(name string, callers int, open func(ctx context.Context, b *measure.Bench) (call, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if err := r.start(ctx, b); err != nil {
			return nil, err
		}
		one, err := open(ctx, b)
		if err != nil {
			return nil, err
		}
		for range 20 { // connections and caches become warm
			if err := one(ctx); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context) (measure.Values, error) {
			return load.Run(ctx, callers, b.Span, func(ctx context.Context, _ int) error { return one(ctx) })
		}, nil
	}}
}

func (r *rig) plain(version string) func(context.Context, *measure.Bench) (call, error) {
	return func(ctx context.Context, b *measure.Bench) (call, error) {
		return connect(ctx, b, r.upstream, version, "echo")
	}
}

func (r *rig) through(version string) func(context.Context, *measure.Bench) (call, error) {
	return func(ctx context.Context, b *measure.Bench) (call, error) {
		return connect(ctx, b, r.director+"/mcp", version, "s__echo")
	}
}

func (r *rig) rest(context.Context, *measure.Bench) (call, error) {
	return restCall(r.director + "/api/tools/s__echo/call"), nil
}

// connect returns calls by an SDK client with one protocol version. It waits until the
// tool is available, because servers are connected in the background.
func connect(ctx context.Context, b *measure.Bench, url, version, tool string) (call, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * side}}
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: h, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	b.Cleanup(func() {
		_ = s.Close()
		h.CloseIdleConnections()
	})
	if got := s.InitializeResult().ProtocolVersion; got != version {
		return nil, fmt.Errorf("%s speaks %s, not %s", url, got, version)
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
			return one, nil
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("%s: %w", url, err)
		}
	}
}

// restCall returns calls by POST /api/tools/{tool}/call.
func restCall(url string) call { return restCallWith(url, nil) }

// restCallWith is restCall with additional headers.
func restCallWith(url string, headers http.Header) call {
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: side}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(`{"arguments":{"text":"hello"}}`)))
		if err != nil {
			return err
		}
		maps.Copy(req.Header, headers)
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
