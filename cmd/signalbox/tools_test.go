package main

import (
	"io"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// A tool that cannot be is a message that names it, whichever role stumbles on
// it, and leaves nothing open.
func TestStartWithAToolThatCannotBe(t *testing.T) {
	loop := toolconf.CommandTool{
		Name: "endless", Where: "tools.yaml:2", Command: "/bin/true",
		InputSchema: []byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`),
	}
	cfg := config.Default(t.TempDir())
	cfg.Addr, cfg.Store = "127.0.0.1:0", "memory:"
	cfg.Tools.Commands = []toolconf.CommandTool{loop}
	out := streams{Out: io.Discard, Err: io.Discard}
	wants := func(role string, got any, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "tools.yaml:2: command tool endless: inputSchema: its $ref") {
			t.Errorf("%s: %v, %v", role, got, err)
		}
	}
	g, err := openStandalone(t.Context(), cfg, out)
	wants("gateway", g, err)
	s, err := openService(t.Context(), cfg, t.TempDir(), out)
	wants("director", s, err)
}

// A gateway that stands alone has nothing to share a tool queue by.
func TestAGatewayAloneSharesNoQueue(t *testing.T) {
	cfg := config.Default(t.TempDir())
	cfg.Tools.Queues = map[string]toolconf.Queue{
		"browser": {Concurrent: 1, Shared: true, Where: "tools.yaml:3"}, "default": {Concurrent: 64, Where: "tools.yaml:2"},
	}
	_, err := openStandalone(t.Context(), cfg, streams{Out: io.Discard, Err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "tools.yaml:3: queues.browser.shared: a gateway that stands alone") || !strings.Contains(err.Error(), "signalbox director") {
		t.Fatal(err)
	}
}
