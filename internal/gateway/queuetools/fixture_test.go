package queuetools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/landing"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// fixture is a complete director with the queue's tools: a store on disk, a
// dispatcher, fake agents, and the MCP endpoint behind a real listener.
type fixture struct {
	t      *testing.T
	store  *sqlite.Store
	engine *engine.Engine
	id     *identity.Keeper
	dir    *httpapi.Server
	tools  *queuetools.Tools
	agents map[string]*agenttest.Agent
	url    string
}

type options struct {
	engine engine.Options
	token  string              // static
	tasks  httpapi.ToolTasks   // nil: tool calls cannot become tasks
	agents []agenttest.Options // default: coder
	more   []gateway.Provider
}

// The eras of the protocol.
const (
	legacyEra = "2025-06-18"
	modernEra = "2026-07-28"
)

// soon bounds what should happen quickly, on a busy machine.
const soon = time.Minute

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	y := &fixture{t: t, tools: queuetools.New(), agents: map[string]*agenttest.Agent{}}
	var err error
	if y.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "signalbox.db"), Fatal: func(err error) { t.Error(err) }}); err != nil {
		t.Fatal(err)
	}
	if o.engine.Sealer, err = seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes)); err != nil {
		t.Fatal(err)
	}
	y.engine = engine.New(y.store, o.engine)
	if y.id, err = identity.New(t.Context(), y.store, identity.Options{Static: o.token, Now: y.engine.Now, Cost: identity.Cost{MemoryKiB: 8, Passes: 1}}); err != nil {
		t.Fatal(err)
	}
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{toolqueue.Default: {Concurrent: 64}}); err != nil {
		t.Fatal(err)
	}
	gw, err := gateway.New(gateway.Options{Queues: queues, Providers: append([]gateway.Provider{y.tools}, o.more...), Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	mcpServer := endpoint.New(gw, endpoint.Options{Version: "1.0.0"})
	runs := push.New(y.engine, push.Options{Options: execution.Options{Tick: 20 * time.Millisecond}, Confirm: 10 * time.Millisecond, Probe: time.Second})
	if y.dir, err = httpapi.New(httpapi.Config{
		Engine: y.engine, Runs: runs, Identity: y.id, Token: o.token, Tools: gw, MCP: mcpServer, QueueTools: y.tools, ToolTasks: o.tasks, Landings: landing.New(y.store, y.engine, landing.DefaultRounds, slog.New(slog.DiscardHandler)),
	}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(y.dir.Handler())
	y.url = server.URL
	t.Cleanup(func() {
		y.dir.Stop()
		http.DefaultClient.CloseIdleConnections()
		if err := mcpServer.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := gw.Close(); err != nil {
			t.Error(err)
		}
		runs.Stop()
		if err := y.store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.fleet(o.agents, runs)
	return y
}

// fleet starts the agents and the dispatcher, and waits until they are up.
func (y *fixture) fleet(all []agenttest.Options, runs *push.Dispatcher) {
	y.t.Helper()
	if all == nil {
		all = []agenttest.Options{{Name: "coder"}}
	}
	for _, o := range all {
		o.Sessions, o.Isolated = true, 1
		a := agenttest.New(y.t, o)
		y.agents[o.Name] = a
		if _, err := y.engine.PutAgent(y.t.Context(), a.Row(), ""); err != nil {
			y.t.Fatal(err)
		}
	}
	if err := runs.Start(context.Background()); err != nil {
		y.t.Fatal(err)
	}
	for name := range y.agents {
		testkit.Wait(y.t, name+" is up", func() bool {
			a, known := runs.LiveAgent(name)
			return known && a.Up && !a.Held && a.IsolatedSlots == 1
		})
	}
}

// task reads a task from the store.
func (y *fixture) task(id string) signalbox.Task {
	y.t.Helper()
	t, err := y.store.Task(y.t.Context(), id)
	if err != nil {
		y.t.Fatal(err)
	}
	return t
}

// token creates a token and returns its secret.
func (y *fixture) token(n identity.NewToken) string {
	y.t.Helper()
	_, secret, err := y.id.CreateToken(y.t.Context(), n)
	if err != nil {
		y.t.Fatal(err)
	}
	return secret
}

// modelClient is an MCP client of the SDK, as a model uses it.
type modelClient struct {
	*mcp.ClientSession
	y        *fixture
	progress chan *mcp.ProgressNotificationParams
}

// connect connects a client of this era, which sends the headers.
func (y *fixture) connect(era string, headers ...string) *modelClient {
	y.t.Helper()
	transport := &http.Transport{}
	c := &modelClient{y: y, progress: make(chan *mcp.ProgressNotificationParams, 1000)}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) { c.progress <- p.Params },
	})
	var err error
	if c.ClientSession, err = sdk.Connect(y.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: y.url + "/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: withHeaders{transport, headers}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: era}); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		c.Close()
		transport.CloseIdleConnections()
	})
	return c
}

type withHeaders struct {
	http.RoundTripper
	headers []string
}

func (s withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for i := 0; i < len(s.headers); i += 2 {
		r.Header.Set(s.headers[i], s.headers[i+1])
	}
	return s.RoundTripper.RoundTrip(r)
}

// outputs are the output schemas of the tools.
var outputs = sync.OnceValue(func() map[string]*jsonschema.Resolved {
	all := map[string]*jsonschema.Resolved{}
	for _, t := range queuetools.New().Tools() {
		var def struct {
			Output jsonschema.Schema `json:"outputSchema"`
		}
		if err := json.Unmarshal(t.Definition, &def); err != nil {
			panic(err)
		}
		resolved, err := def.Output.Resolve(nil)
		if err != nil {
			panic(err)
		}
		all[t.Name] = resolved
	}
	return all
})

// said is the answer of a tool.
type said struct {
	*mcp.CallToolResult
	text string
}

// answers checks the result of a call against the tool's output schema, and
// returns its text.
func (c *modelClient) answers(tool string, res *mcp.CallToolResult, err error, into any) said {
	c.y.t.Helper()
	if err != nil {
		c.y.t.Fatalf("%s: %v", tool, err)
	}
	s := said{CallToolResult: res}
	for _, block := range res.Content {
		text, ok := block.(*mcp.TextContent)
		if !ok {
			c.y.t.Fatalf("%s answered with a %T", tool, block)
		}
		s.text += text.Text + "\n"
	}
	s.text = strings.TrimSuffix(s.text, "\n")
	if res.IsError {
		if res.StructuredContent != nil || s.text == "" {
			c.y.t.Fatalf("%s failed with %v %q", tool, res.StructuredContent, s.text)
		}
		return s
	}
	if err := outputs()[tool].Validate(res.StructuredContent); err != nil {
		c.y.t.Fatalf("%s answered what its schema does not allow: %v\n%v", tool, err, res.StructuredContent)
	}
	if into != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			c.y.t.Fatal(err)
		}
	}
	return s
}

// call calls a tool and expects success.
func (c *modelClient) call(tool string, args, into any) said {
	c.y.t.Helper()
	res, err := c.CallTool(c.y.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	s := c.answers(tool, res, err, into)
	if s.IsError {
		c.y.t.Fatalf("%s: %s", tool, s.text)
	}
	return s
}

// fails calls a tool and expects an error with this code.
func (c *modelClient) fails(tool string, args any, code signalbox.Code) string {
	c.y.t.Helper()
	res, err := c.CallTool(c.y.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	s := c.answers(tool, res, err, nil)
	if !s.IsError || !strings.HasPrefix(s.text, string(code)+": ") {
		c.y.t.Fatalf("%s %v: want the error %s, not %s", tool, args, code, s.text)
	}
	return s.text
}

// begin calls a tool in the background. Its progress goes to the client's
// news.
func (c *modelClient) begin(ctx context.Context, tool string, args any) <-chan func(into any) said {
	done := make(chan func(any) said, 1)
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("turn")
	go func() {
		res, err := c.CallTool(ctx, params)
		done <- func(into any) said { return c.answers(tool, res, err, into) }
	}()
	return done
}

// args are the arguments of a tool.
type args = map[string]any

// inEras runs a test with a client of each era.
func inEras(t *testing.T, test func(t *testing.T, era string)) {
	for _, era := range []string{legacyEra, modernEra} {
		t.Run(era, func(t *testing.T) { test(t, era) })
	}
}
