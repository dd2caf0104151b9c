package director

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// The error for a tool that cannot work names it, and nothing stays open.
func TestStartWithAToolThatCannotBe(t *testing.T) {
	cfg := config.Default(t.TempDir())
	cfg.Addr, cfg.Store = "127.0.0.1:0", "memory:"
	cfg.Tools.Commands = []toolconf.CommandTool{{
		Name: "endless", Where: "tools.yaml:2", Command: "/bin/true",
		InputSchema: []byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`),
	}}
	p := serve.Program{OpenStore: func(context.Context, config.Config, *slog.Logger) (store.Store, error) {
		return memory.New(memory.Options{ID: "memory"}), nil
	}}
	d, err := Open(t.Context(), p, cfg, t.TempDir(), roles.Streams{Out: io.Discard, Err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "tools.yaml:2: command tool endless: inputSchema: its $ref") {
		t.Errorf("%v, %v", d, err)
	}
}

func TestInstanceNames(t *testing.T) {
	for _, x := range []struct{ host, port, want string }{
		{"east-1", "8080", "east-1-8080"},
		{"east.example", "80", "east.example-80"},
		{"ost_straße", "8080", "ost_stra-e-8080"},
		{"", "8080", "director-8080"},
		{"---", "8080", "director-8080"},
		{strings.Repeat("x", 300), "65535", strings.Repeat("x", 58) + "-65535"},
	} {
		if got := instanceName(x.host, x.port); got != x.want || !signalbox.ValidName(got) {
			t.Errorf("%q %s: %q", x.host, x.port, got)
		}
	}
}
