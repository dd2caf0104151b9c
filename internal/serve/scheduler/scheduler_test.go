package scheduler

import (
	"context"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer calls a function for each line that starts with prefix.
type writer struct {
	prefix string
	f      func()
}

func (w writer) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), w.prefix) {
		w.f()
	}
	return len(b), nil
}

// A scheduler stops when its context ends, and leaves nothing running.
func TestStopEndsEverything(t *testing.T) {
	home := t.TempDir()
	t.Setenv(config.HomeEnv, home)
	cfg := config.Default(home)
	cfg.Scheduler.Addr = "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := roles.Scheduler{
		Streams:  roles.Streams{Out: writer{"Signalbox scheduler at ", stop}, Err: io.Discard},
		Director: func() (url, token string, known bool, err error) { return "", "", false, nil },
	}
	if err := Run(ctx, serve.Program{Version: "dev"}, cfg, o); err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("it did not say where it is")
	}
}
