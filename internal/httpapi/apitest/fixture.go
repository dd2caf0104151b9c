// Package apitest is a fixture for tests of the HTTP API: a director over a store in
// memory, with fakes for the dispatcher, tools, schedules and other directors.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/landing"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// Fixture is a director over an empty memory store, with a fake dispatcher.
type Fixture struct {
	T        *testing.T
	Store    *memory.Store
	Engine   *engine.Engine
	Identity *identity.Keeper
	Server   *httpapi.Server
	Runs     *Runs
	Live     *Live
	HTTP     *httptest.Server // nil before Serve
}

// Options are what a test can change before the director is created.
type Options struct {
	Engine engine.Options
	Config httpapi.Config
}

// New creates a director, which is stopped when the test ends.
func New(t *testing.T, change ...func(*Options)) *Fixture {
	t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	b := &Fixture{T: t, Store: memory.New(memory.Options{}), Runs: NewRuns(), Live: &Live{}}
	o := Options{Engine: engine.Options{Sealer: sealer}, Config: httpapi.Config{Runs: b.Runs, Version: "1.0.0"}}
	for _, f := range change {
		f(&o)
	}
	b.Engine = engine.New(b.Store, o.Engine)
	b.Engine.SetLive(b.Live)
	b.Live.changed = b.Engine.AgentChanged
	o.Config.Engine = b.Engine
	if b.Identity, err = identity.New(context.Background(), b.Store, identity.Options{ // a fuzz test has no context
		Static: o.Config.Token, Now: b.Engine.Now, Random: o.Engine.Random, Cost: identity.Cost{MemoryKiB: 8, Passes: 1},
	}); err != nil {
		t.Fatal(err)
	}
	o.Config.Identity = b.Identity
	o.Config.Landings = landing.New(b.Store, b.Engine, landing.DefaultRounds, slog.New(slog.DiscardHandler))
	if b.Server, err = httpapi.New(o.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Server.Stop)
	return b
}

// Serve listens on a free port of 127.0.0.1; HTTP.URL is the address.
func (b *Fixture) Serve() *Fixture {
	b.HTTP = httptest.NewServer(b.Server.Handler())
	b.T.Cleanup(func() {
		b.Server.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.HTTP.Close()
	})
	return b
}

// Reply is a response with its whole body.
type Reply struct {
	*http.Response
	Body []byte
}

// Edit changes a request before it is sent.
type Edit func(*http.Request)

// Header sets a header of a request.
func Header(name, value string) Edit {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// From sets the address that a request comes from.
func From(addr string) Edit { return func(r *http.Request) { r.RemoteAddr = addr } }

// Do calls the handler with a request, without a connection. A body is sent as JSON.
func (b *Fixture) Do(method, path, body string, edits ...Edit) Reply {
	b.T.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(b.T.Context(), method, "http://127.0.0.1:8080"+path, in)
	r.RemoteAddr = "127.0.0.1:40000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edits {
		f(r)
	}
	w := httptest.NewRecorder()
	b.Server.Handler().ServeHTTP(w, r)
	resp := w.Result()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	return Reply{Response: resp, Body: data}
}

// Want fails unless the response has that status, and decodes its body; nil: it does not.
func (r Reply) Want(t *testing.T, status int, into any) Reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, status, r.Body)
	}
	if into != nil {
		if err := json.Unmarshal(r.Body, into); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
	}
	return r
}

// WantError fails unless the response is an error with that status and code.
func (r Reply) WantError(t *testing.T, status int, code signalbox.Code) api.Error {
	t.Helper()
	var e api.Error
	r.Want(t, status, &e)
	if e.Error != string(code) || e.Message == "" || e.RequestID == "" {
		t.Fatalf("got %+v, want code %s with a message and a request id", e, code)
	}
	return e
}

// Submit submits a task and fails if it is refused.
func (b *Fixture) Submit(body string) api.SubmitResponse {
	b.T.Helper()
	var out api.SubmitResponse
	b.Do("POST", "/api/queue/task", body).Want(b.T, http.StatusCreated, &out)
	return out
}

// AddAgent registers an agent that is up.
func (b *Fixture) AddAgent(name string, slots int) signalbox.Agent {
	b.T.Helper()
	a, err := b.Engine.PutAgent(b.T.Context(), signalbox.Agent{
		Name: name, Kind: "demo", URL: "http://127.0.0.1:9000", Slots: slots, Source: signalbox.AgentRegistered,
	}, "")
	if err != nil {
		b.T.Fatal(err)
	}
	b.Live.Set(engine.LiveAgent{Agent: a, Up: true})
	return a
}

// ReportAccount makes an agent that is up use the account with its name, as if the agent had
// reported it.
func (b *Fixture) ReportAccount(agent string, windows []signalbox.AccountWindow) signalbox.Agent {
	b.T.Helper()
	a, known := b.Live.LiveAgent(agent)
	if !known {
		b.T.Fatalf("there is no agent %s", agent)
	}
	a.Account = agent
	b.Live.Set(a)
	if err := b.Engine.ReportAccount(b.T.Context(), agent, accounts.News{Name: a.Account, Kind: a.Kind, Login: "ann@example.com", Windows: windows}); err != nil {
		b.T.Fatal(err)
	}
	return a.Agent
}

// Park ends a run at the limit five_hour of its agent's account, which resets after the
// given time. The model had answered already.
func (b *Fixture) Park(t signalbox.Task, resets time.Duration) {
	b.T.Helper()
	a, _ := b.Live.LiveAgent(t.Agent)
	_, err := b.Engine.Finish(b.T.Context(), t, engine.Outcome{
		Reason: signalbox.ReasonAgentError, SessionID: "talk-" + t.Agent, Account: accounts.News{Name: a.Account, Kind: a.Kind},
		Limit: &accounts.Limit{
			Kind: accounts.Usage, Window: "five_hour", ResetsAt: b.Engine.Now().Add(resets), Source: "event", Text: "You've hit your limit", Began: true,
		},
	})
	if err != nil {
		b.T.Fatal(err)
	}
}

// Claim has an agent claim the next task, which is then dispatching.
func (b *Fixture) Claim(a signalbox.Agent) signalbox.Task {
	b.T.Helper()
	c, found, err := b.Engine.Claim(b.T.Context(), a, 0)
	if err != nil || !found {
		b.T.Fatalf("claim: found %v, %v", found, err)
	}
	return c.Task
}

// Run has an agent claim and accept the next task, without a session.
func (b *Fixture) Run(a signalbox.Agent) signalbox.Task {
	b.T.Helper()
	t, err := b.Engine.Accept(b.T.Context(), b.Claim(a), "task-1", "")
	if err != nil {
		b.T.Fatal(err)
	}
	return t
}

// FinishTask ends a task in flight.
func (b *Fixture) FinishTask(t signalbox.Task, reason signalbox.Reason, res signalbox.Result) {
	b.T.Helper()
	if _, err := b.Engine.Finish(b.T.Context(), t, engine.Outcome{Reason: reason, Result: &res}); err != nil {
		b.T.Fatal(err)
	}
}

// Live is a fake dispatcher, with the agents as a real one would see them.
type Live struct {
	changed func(name string) // called by Set; nil: none
	Mu      sync.Mutex
	List    []engine.LiveAgent
	Index   map[string]int // into List, by name, for tests with many agents; nil: List is searched
}

func (f *Live) Agents() []engine.LiveAgent {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return append([]engine.LiveAgent(nil), f.List...)
}

func (f *Live) LiveAgent(name string) (engine.LiveAgent, bool) {
	if f.Index != nil {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return f.List[f.Index[name]], true
	}
	for _, a := range f.Agents() {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

// Remove removes an agent, without telling the engine.
func (f *Live) Remove(name string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.List = slices.DeleteFunc(f.List, func(a engine.LiveAgent) bool { return a.Name == name })
}

// Set adds or changes an agent, and tells the engine.
func (f *Live) Set(a engine.LiveAgent) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.changed != nil {
		defer f.changed(a.Name)
	}
	for i := range f.List {
		if f.List[i].Name == a.Name {
			f.List[i] = a
			return
		}
	}
	f.List = append(f.List, a)
}

// Runs fakes the runs that a director follows. The test writes their logs.
type Runs struct {
	mu         sync.Mutex
	logs       map[string]string
	grew       chan struct{}
	Heartbeats map[string]api.Heartbeat
	// Answering names the agents for which Answers is true.
	Answering map[string]bool
	// Patches are the patches that agents keep, by queue_id.
	Patches map[string]string
	// Worktrees are the worktrees that agents have, by agent.
	Worktrees map[string]api.AgentWorkspaces
}

// NewRuns returns a Runs that follows no run.
func NewRuns() *Runs {
	return &Runs{logs: map[string]string{}, grew: make(chan struct{}), Heartbeats: map[string]api.Heartbeat{}}
}

// Print appends to the log of a run, and follows the run from then on.
func (f *Runs) Print(id, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs[id] += text
	close(f.grew)
	f.grew = make(chan struct{})
}

// End stops following a run.
func (f *Runs) End(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.logs, id)
	close(f.grew)
	f.grew = make(chan struct{})
}

// Output returns the log of a run from after on. If there is nothing new, it waits.
func (f *Runs) Output(ctx context.Context, id string, after int64, wait time.Duration) (api.Output, bool) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		f.mu.Lock()
		log, ok := f.logs[id]
		grew := f.grew
		f.mu.Unlock()
		out := api.Output{Seq: after, Next: after}
		if !ok {
			return out, false
		}
		if after < int64(len(log)) {
			out.Text, out.Next = log[after:], int64(len(log))
			return out, true
		}
		select {
		case <-grew:
		case <-over.C:
			return out, true
		case <-ctx.Done():
			return out, true
		}
	}
}

// WholeLog returns the log from byte after; CodeNotFound for a run that was not followed,
// CodeAgentDown for a task whose agent does not answer.
func (f *Runs) WholeLog(_ context.Context, t *signalbox.Task, after int64) (api.AgentOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	log, ok := f.logs[t.ID]
	switch {
	case !f.Answering[t.Agent]:
		return api.AgentOutput{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s does not give the log: timeout", t.Agent)
	case !ok:
		return api.AgentOutput{}, signalbox.Errorf(signalbox.CodeNotFound, "agent %s does not have the log of this task", t.Agent)
	}
	after = min(after, int64(len(log)))
	return api.AgentOutput{Seq: after, Text: log[after:], Next: int64(len(log)), Done: t.State.Terminal()}, nil
}

// Patch returns the patch of a task in Patches, with the errors of WholeLog.
func (f *Runs) Patch(_ context.Context, t *signalbox.Task, _ int64) (io.ReadCloser, error) {
	patch, ok := f.Patches[t.ID]
	switch {
	case !f.Answering[t.Agent]:
		return nil, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s does not give the patch: timeout", t.Agent)
	case !ok:
		return nil, signalbox.Errorf(signalbox.CodeNotFound, "agent %s does not have the patch of this task", t.Agent)
	}
	return io.NopCloser(strings.NewReader(patch)), nil
}

// Workspaces returns the worktrees of an agent in Worktrees; CodeAgentDown if it does not answer.
func (f *Runs) Workspaces(_ context.Context, agent string) (api.AgentWorkspaces, error) {
	if !f.Answering[agent] {
		return api.AgentWorkspaces{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s did not list its worktrees: timeout", agent)
	}
	return f.Worktrees[agent], nil
}

// DiscardWorkspace removes a worktree from Worktrees; CodeAgentDown like Workspaces.
func (f *Runs) DiscardWorkspace(_ context.Context, agent, name string, how api.DiscardWorkspace) (done api.WorkspaceDiscarded, err error) {
	if !f.Answering[agent] {
		return done, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s did not discard the worktree %s: timeout", agent, name)
	}
	all := f.Worktrees[agent]
	for i, w := range all.Workspaces {
		if w.Name != name {
			continue
		}
		if w.Seen != how.Seen {
			return done, signalbox.Errorf(signalbox.CodeConflict, "1 commit would be lost with the worktree %s", name)
		}
		all.Workspaces = slices.Delete(all.Workspaces, i, i+1)
		f.Worktrees[agent] = all
		return api.WorkspaceDiscarded{Name: name, Branch: w.Branch, BranchDeleted: how.DeleteBranch, Bytes: w.Bytes}, nil
	}
	return done, signalbox.Errorf(signalbox.CodeNotFound, "agent %s has no worktree %s", agent, name)
}

// Heartbeat records a heartbeat.
func (f *Runs) Heartbeat(name string, beat api.Heartbeat) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Heartbeats[name] = beat
	return true
}

// Answers returns the value of Answering.
func (f *Runs) Answers(_ context.Context, name string) bool { return f.Answering[name] }

// HeartbeatInterval is 5 s.
func (f *Runs) HeartbeatInterval() time.Duration { return 5 * time.Second }

// HeardAt sets LastHeard of all agents, without telling the engine.
func (f *Live) HeardAt(at time.Time) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i := range f.List {
		f.List[i].LastHeard = at
	}
}

// Timeout is the time after which a wait of a test fails.
const Timeout = time.Minute
