package director

import (
	"context"
	"errors"
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

var program = serve.Program{OpenStore: func(context.Context, config.Config, *slog.Logger) (store.Store, error) {
	return memory.New(memory.Options{ID: "memory"}), nil
}}

// A director that is stopped, and one whose ready function fails, leave nothing running.
// TestMain checks that.
func TestNothingRunsAfterTheEnd(t *testing.T) {
	broken := errors.New("no agent starts")
	for _, want := range []error{nil, broken} {
		home := t.TempDir()
		t.Setenv(config.HomeEnv, home)
		cfg := config.Default(home)
		cfg.Addr, cfg.Store = "127.0.0.1:0", "memory:"
		ctx, stop := context.WithCancel(t.Context())
		d, err := Open(ctx, program, cfg, home, roles.Streams{Out: io.Discard, Err: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Run(ctx, func(context.Context) error {
			if _, ok := serve.DefaultDirector(); !ok {
				t.Error("the command line does not find it")
			}
			if want == nil {
				stop()
			}
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if l, err := serve.Listen(t.Context(), d.Addr().String()); err != nil {
			t.Errorf("it still listens: %v", err)
		} else {
			l.Close()
		}
		d.Close()
		stop()
	}
}

// The error for an invalid tool names it, and nothing stays open.
func TestStartWithAToolThatCannotBe(t *testing.T) {
	cfg := config.Default(t.TempDir())
	cfg.Addr, cfg.Store = "127.0.0.1:0", "memory:"
	cfg.Tools.Commands = []toolconf.CommandTool{{
		Name: "endless", Where: "tools.yaml:2", Command: "/bin/true",
		InputSchema: []byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`),
	}}
	d, err := Open(t.Context(), program, cfg, t.TempDir(), roles.Streams{Out: io.Discard, Err: io.Discard})
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
