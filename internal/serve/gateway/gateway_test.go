package gateway

import (
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	program = serve.Program{EmptyStore: func() store.Store { return memory.New(memory.Options{}) }}
	discard = roles.Streams{Out: io.Discard, Err: io.Discard}
)

// The error for an invalid tool names it, and nothing stays open.
func TestStartWithAToolThatCannotBe(t *testing.T) {
	cfg := config.Default(t.TempDir())
	cfg.Tools.Commands = []toolconf.CommandTool{{
		Name: "endless", Where: "tools.yaml:2", Command: "/bin/true",
		InputSchema: []byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`),
	}}
	if g, err := open(t.Context(), program, cfg, discard); err == nil || !strings.Contains(err.Error(), "tools.yaml:2: command tool endless: inputSchema: its $ref") {
		t.Errorf("%v, %v", g, err)
	}
}

// A standalone gateway cannot share a tool queue.
func TestAGatewayAloneSharesNoQueue(t *testing.T) {
	cfg := config.Default(t.TempDir())
	cfg.Tools.Queues = map[string]toolconf.Queue{
		"browser": {Concurrent: 1, Shared: true, Where: "tools.yaml:3"}, "default": {Concurrent: 64, Where: "tools.yaml:2"},
	}
	_, err := open(t.Context(), program, cfg, discard)
	if err == nil || !strings.Contains(err.Error(), "tools.yaml:3: queues.browser.shared: a standalone gateway") || !strings.Contains(err.Error(), "signalbox director") {
		t.Fatal(err)
	}
}
