//go:build unix

package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func openGateway(t *testing.T, conf ...toolconf.CommandTool) *gateway.Gateway {
	t.Helper()
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"default": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{open(t, conf...)}, Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestTimeoutThroughTheGateway(t *testing.T) {
	g := openGateway(t, toolconf.CommandTool{Name: "t", Command: script(t, "exec sleep 60\n"), Timeout: 100 * time.Millisecond})
	r, err := g.Call(t.Context(), gateway.Call{Tool: "t"})
	if err != nil || !r.IsError || string(r.Content) != `[{"type":"text","text":"Task timed out after 100ms"}]` {
		t.Errorf("%s, %v", r.Content, err)
	}
}

func TestInvalidInputTakesNoSlot(t *testing.T) {
	g := openGateway(t, toolconf.CommandTool{Name: "t", Command: "/bin/true", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)})
	_, err := g.Call(t.Context(), gateway.Call{Tool: "t", Arguments: json.RawMessage(`{"n":"x"}`)})
	if signalbox.CodeOf(err) != signalbox.CodeValidation || !strings.Contains(err.Error(), "n must be an integer, not a string") {
		t.Errorf("%v", err)
	}
}

// TestSlotIsHeldUntilProcessesEnd: a child process ignores SIGTERM and writes to a file while
// it is alive.
func TestSlotIsHeldUntilProcessesEnd(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	path, said := pipe(t)
	g := openGateway(t,
		toolconf.CommandTool{Name: "stays", Command: script(t, "trap '' TERM\n(trap '' TERM; echo $$ > "+path+"; while :; do echo x >> "+alive+"; sleep 0.02; done)\n")},
		toolconf.CommandTool{Name: "next", Command: script(t, "wc -l < "+alive+"; sleep 0.2; wc -l < "+alive+"\n")},
	)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error, 1)
	go func() {
		_, err := g.Call(ctx, gateway.Call{Tool: "stays"})
		left <- err
	}()
	said(t)
	leave()
	r, err := g.Call(t.Context(), gateway.Call{Tool: "next"})
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(r.Content, &parts); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Fields(parts[0].Text); len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("a process of the previous run continued: %q", lines)
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_ = os.Remove(alive)
}
