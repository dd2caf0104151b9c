package agenttest

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/testport"
)

// Options configures an Agent. The zero value is a full agent with one slot: it understands fences and long
// polls, and serves its log.
type Options struct {
	Name  string // "" is "fake"
	Kind  string // "" is "demo"
	Slots int    // 0 is 1
	// Plain makes it an agent of the work-queue seed: no queue_id, no fence, no wait, no output, one task at
	// a time.
	Plain bool
	// Preview is how many bytes of a prompt a plain agent shows in its status and history. 0 is 50, as in the
	// seed; a negative value shows nothing.
	Preview int
	// NoHistory: it keeps no history.
	NoHistory bool
	// NoOutput: a full agent that does not serve /task/{id}/output.
	NoOutput bool
	// StrictIDs: it answers 400 to an id that is not in its own format.
	StrictIDs bool
	// NeverBusy: it never says busy and runs every offer, whatever else is running.
	NeverBusy bool
	// IgnoresCancel: it answers a cancel with 202 and continues.
	IgnoresCancel bool
	// Auto completes every execution as soon as it has started.
	Auto bool
	// NoSession: it names no session.
	NoSession bool
	// Isolated is how many isolated executions it runs beside its slots.
	Isolated int
	// Sessions: it lists its sessions, those that it started and has not forgotten.
	Sessions bool
	// Renames: it continues a session under a new id each time, as some CLIs do.
	Renames bool
	// NoLastOutput: it does not report when its runs last printed something.
	NoLastOutput bool
	// Account is the name of the account that its runs spend; "": it reports none.
	Account string
	Windows []api.AccountWindow // of Account
	// Folder is the ID of the folder that its runs work in; "": it reports none.
	Folder string
	// Full is why it takes no tasks; "": it takes some. See SetFull.
	Full string
	// Token is the bearer token that it requires; "": none.
	Token string
}

// Agent is a scriptable agent.
type Agent struct {
	Options
	t testing.TB

	mu       sync.Mutex
	server   *httptest.Server
	quit     context.CancelFunc // ends waiting requests
	port     *testport.Reserved
	changed  chan struct{} // closed at the next change of the fields below
	silent   chan struct{} // non-nil while it answers nothing; closed by Speak
	scripts  map[Request][]Step
	habits   map[Request]Step
	requests []Seen
	execs    []*execution // in the order of their starts
	fences   map[place]int64
	sessions map[string]time.Time // its sessions, with the time of their last use
	director string
	clock    int // counts starts and ends
	serial   int
	closed   bool
	now      func() time.Time
	answered *time.Time // when its provider last answered
}

// New starts an agent. It is closed when the test ends.
func New(t testing.TB, o Options) *Agent {
	t.Helper()
	if o.Name == "" {
		o.Name = "fake"
	}
	if o.Kind == "" {
		o.Kind = "demo"
	}
	if o.Slots == 0 {
		o.Slots = 1
	}
	if o.Preview == 0 {
		o.Preview = 50
	}
	a := &Agent{
		Options: o, t: t, changed: make(chan struct{}), scripts: map[Request][]Step{}, habits: map[Request]Step{}, fences: map[place]int64{}, sessions: map[string]time.Time{},
		now: func() time.Time { return time.Now().UTC() },
	}
	a.Up()
	t.Cleanup(a.Close)
	return a
}

// SetFull changes Options.Full of a running agent.
func (a *Agent) SetFull(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Full = why
}

// SetClock replaces the clock that gives the times of its executions.
func (a *Agent) SetClock(now func() time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = now
}

// URL is its base URL, also while it is down.
func (a *Agent) URL() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return "http://" + a.port.Addr()
}

// Row is the agent as a director stores it.
func (a *Agent) Row() signalbox.Agent {
	return signalbox.Agent{
		Name: a.Name, Kind: a.Kind, URL: a.URL(), Slots: a.Slots, Fencing: !a.Plain, Source: signalbox.AgentFromConfig,
	}
}

// Down closes its listener and all connections, so that connections are refused. Its runs continue.
func (a *Agent) Down() {
	a.mu.Lock()
	server, quit := a.server, a.quit
	a.server = nil
	a.mu.Unlock()
	if server != nil {
		_ = server.Listener.Close() // server.Close closes it again
		quit()
		server.CloseClientConnections()
		server.Close()
	}
}

// Up listens again, at the same address.
func (a *Agent) Up() {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		return
	}
	a.listen()
}

func (a *Agent) listen() {
	var err error
	if a.port == nil {
		if a.port, err = testport.Reserve(); err != nil {
			a.t.Errorf("fake agent %s has no port: %v", a.Name, err)
			return
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", a.port.Addr())
	if err != nil {
		a.t.Errorf("fake agent %s cannot listen: %v", a.Name, err)
		return
	}
	a.server = httptest.NewUnstartedServer(a.handler())
	_ = a.server.Listener.Close() // the listener that httptest created
	a.server.Listener = l
	ctx, quit := context.WithCancel(context.Background())
	a.quit = quit
	a.server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	a.server.Start()
}

// Move changes its address.
func (a *Agent) Move() {
	a.Down()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.port.Release()
	a.port = nil
	a.listen()
}

// Silence makes it answer nothing from now on, like a stopped process: connections are accepted, requests are
// read and stay unanswered.
func (a *Agent) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent == nil {
		a.silent = make(chan struct{})
		a.change()
	}
}

// Speak ends Silence: the requests read meanwhile are answered now.
func (a *Agent) Speak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent != nil {
		close(a.silent)
		a.silent = nil
	}
}

// Restart closes and reopens it. Its runs are interrupted; without memory it has forgotten all tasks.
func (a *Agent) Restart(memory bool) {
	a.Down()
	a.Forget(memory)
	a.Up()
}

// Forget interrupts its runs, and without memory forgets all tasks, as a restart does.
func (a *Agent) Forget(memory bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.execs {
		a.end(e, End{State: "failed", Error: &api.AgentError{Type: "interrupted", Message: "the agent was restarted"}})
		e.forgotten = e.forgotten || !memory
	}
}

// Close shuts it down. New registers it as a cleanup of the test.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.Speak()
	a.Down()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.port.Release()
}

// change notifies waiters of a change. mu is held.
func (a *Agent) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// patience is how long Await waits before the test fails: long enough for a
// loaded machine.
const patience = 20 * time.Second

// Await waits until ok returns true. ok is called after each change of the log.
func (a *Agent) Await(what string, ok func() bool) {
	a.t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-over.C:
			seen := a.Requests("")
			a.t.Fatalf("fake agent %s waited %s in vain for %s; it saw, at last, %v", a.Name, patience, what, seen[max(0, len(seen)-10):])
		}
	}
}

// AwaitRequest waits for the nth request of a kind, from 1, and returns it.
func (a *Agent) AwaitRequest(kind Request, n int) Seen {
	a.t.Helper()
	a.Await(fmt.Sprintf("%s number %d", kind, n), func() bool { return len(a.Requests(kind)) >= n })
	return a.Requests(kind)[n-1]
}

// AwaitStart waits for the nth execution, from 1, and returns it.
func (a *Agent) AwaitStart(n int) Execution {
	a.t.Helper()
	a.Await(fmt.Sprintf("execution number %d", n), func() bool { return len(a.Executions()) >= n })
	return a.Executions()[n-1]
}
