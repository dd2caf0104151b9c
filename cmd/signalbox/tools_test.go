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
	g, err := openAlone(t.Context(), cfg, out)
	wants("gateway", g, err)
	s, err := openService(t.Context(), cfg, out)
	wants("director", s, err)
}
