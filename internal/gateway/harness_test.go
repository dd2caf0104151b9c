package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a provider whose behaviour a test sets.
type scripted struct {
	name    string
	onCall  func(ctx context.Context, c gateway.Call) (gateway.Result, error)
	onClose func() error

	mu      sync.Mutex
	tools   []gateway.Tool
	changed func()
	ended   []string // sessions
	state   gateway.Server
}

var text = json.RawMessage(`[{"type":"text","text":"done"}]`)

func (s *scripted) Name() string { return s.name }

func (s *scripted) Start(_ context.Context, changed func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
	return nil
}

func (s *scripted) Tools() []gateway.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]gateway.Tool(nil), s.tools...)
}

// offer replaces the tools.
func (s *scripted) offer(tools ...gateway.Tool) {
	s.mu.Lock()
	s.tools = tools
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed()
	}
}

func (s *scripted) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	if s.onCall == nil {
		return gateway.Result{Content: text}, nil
	}
	return s.onCall(ctx, c)
}

func (s *scripted) EndSession(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, session)
}

func (s *scripted) Server() gateway.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state
	out.Name, out.Tools = s.name, len(s.tools)
	return out
}

func (s *scripted) Close() error {
	if s.onClose != nil {
		return s.onClose()
	}
	return nil
}

// tool returns a tool of server s in a queue, with a timeout of an hour.
func tool(name, queue string) gateway.Tool {
	return gateway.Tool{Name: name, Server: "s", Kind: gateway.KindMCP, Queue: queue, Timeout: time.Hour, Definition: json.RawMessage(`{"name":"` + name + `"}`)}
}

// fixture is a gateway with its log.
type fixture struct {
	*gateway.Gateway
	queues *toolqueue.Queues
	log    *logged
}

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// lines returns the log lines with a message, without their time.
func (l *logged) lines(message string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range strings.Split(l.buf.String(), "\n") {
		if _, rest, ok := strings.Cut(line, " "); ok && strings.Contains(rest+" ", " "+message+" ") {
			out = append(out, rest)
		}
	}
	return out
}

// open makes a gateway that is closed at the end of the test.
func open(t *testing.T, queues map[string]toolqueue.Config, o gateway.Options, providers ...gateway.Provider) *fixture {
	t.Helper()
	b := &fixture{log: &logged{}}
	log, err := telemetry.NewLogger(b.log, "text", slog.LevelDebug)
	if err != nil {
		t.Fatal(err)
	}
	b.queues = toolqueue.New(gateway.Hooks(log))
	if err := b.queues.Configure(queues); err != nil {
		t.Fatal(err)
	}
	o.Queues, o.Providers, o.Log = b.queues, providers, log
	if b.Gateway, err = gateway.New(o); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// one configures a queue of one slot.
func one(name string) map[string]toolqueue.Config {
	return map[string]toolqueue.Config{name: {Concurrent: 1}}
}

// call calls a tool in the background.
func (b *fixture) call(ctx context.Context, c gateway.Call) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		r, err := b.Call(ctx, c)
		done <- answer{r, err}
	}()
	return done
}

type answer struct {
	gateway.Result
	err error
}

// code returns the error's code, and fails the test if it has none.
func code(t *testing.T, err error) signalbox.Code {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	return signalbox.CodeOf(err)
}

// free fails the test unless the queue is unused.
func (b *fixture) free(t *testing.T, queue string) {
	t.Helper()
	if s, ok := b.queues.Status(queue, 0); !ok || s.InUse != 0 || s.Depth != 0 {
		t.Errorf("queue %s: %d slots in use, %d calls waiting", queue, s.InUse, s.Depth)
	}
}

func (b *fixture) depth(queue string) int {
	s, _ := b.queues.Status(queue, 0)
	return s.Depth
}
