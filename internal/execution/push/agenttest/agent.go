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

// Options says what kind of agent it is. The zero value is a full agent with
// one slot: it understands fences, long polls and serves its log.
type Options struct {
	Name  string // "fake" if empty
	Kind  string // "demo" if empty
	Slots int    // 1 if 0
	// Plain makes it an agent of the work-queue seed: no queue_id, no fence,
	// no wait, no output, one task at a time.
	Plain bool
	// Preview is how much of a prompt a plain agent shows in its status and its
	// history, in bytes: 50 if 0, as in the seed, and nothing if below.
	Preview int
	// NoHistory makes it keep no history.
	NoHistory bool
	// NoOutput makes a full agent serve no /task/{id}/output.
	NoOutput bool
	// StrictIDs makes it answer 400 to an id that is not one of its own.
	StrictIDs bool
	// Sloppy makes it never say busy: what is offered runs, whatever else does.
	Sloppy bool
	// Deaf makes it answer a cancel with 202 and run on.
	Deaf bool
	// Auto ends every execution as completed as soon as it has begun.
	Auto bool
	// NoSession makes it name no conversation of its own.
	NoSession bool
	// Isolated is how many isolated executions it takes beside its slots.
	Isolated int
	// Sessions makes it list its conversations: those it began and was not
	// told to forget.
	Sessions bool
	// Renames makes it go on with a conversation under another id each time,
	// as some CLIs do.
	Renames bool
	// Quiet makes it say nothing of when its runs printed last.
	Quiet bool
	// Account is the name of the account that its runs spend; "": it tells none.
	Account string
	Windows []api.AccountWindow // of Account
	// Folder is the ID of the folder that its runs work in; "": it tells none.
	Folder string
	// Full is why it takes no tasks; see SetFull.
	Full string
	// Token is the bearer token it insists on.
	Token string
}

// Agent is a scriptable agent.
type Agent struct {
	Options
	t testing.TB

	mu       sync.Mutex
	server   *httptest.Server
	quit     context.CancelFunc // ends the requests that wait for something
	port     *testport.Reserved
	changed  chan struct{} // closed at the next change of anything below
	silent   chan struct{} // not nil while it answers nothing; closed when it speaks again
	scripts  map[Request][]Step
	habits   map[Request]Step
	requests []Seen
	execs    []*execution // in the order of their starts
	fences   map[place]int64
	sessions map[string]time.Time // its conversations, with their last use
	director string
	clock    int // counts starts and ends
	serial   int
	closed   bool
	now      func() time.Time
	answered *time.Time // when its provider last answered
}

// New starts an agent that ends with the test.
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

// SetFull sets Options.Full of an agent that runs.
func (a *Agent) SetFull(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Full = why
}

// SetClock replaces the clock by which it dates its executions.
func (a *Agent) SetClock(now func() time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = now
}

// URL is where it is, also while it is down.
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

// Down closes its listener and all connections: it refuses connections. What
// it runs goes on.
func (a *Agent) Down() {
	a.mu.Lock()
	server, quit := a.server, a.quit
	a.server = nil
	a.mu.Unlock()
	if server != nil {
		_ = server.Listener.Close() // the server closes it again
		quit()
		server.CloseClientConnections()
		server.Close()
	}
}

// Up listens again, at the address it had.
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
	_ = a.server.Listener.Close() // the one that it made for itself
	a.server.Listener = l
	ctx, quit := context.WithCancel(context.Background())
	a.quit = quit
	a.server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	a.server.Start()
}

// Move goes to another address.
func (a *Agent) Move() {
	a.Down()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.port.Release()
	a.port = nil
	a.listen()
}

// Silence makes it answer nothing from now on, as a stopped process does:
// connections are taken and requests are read and left.
func (a *Agent) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent == nil {
		a.silent = make(chan struct{})
		a.change()
	}
}

// Speak ends a silence: what was read meanwhile is answered now.
func (a *Agent) Speak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent != nil {
		close(a.silent)
		a.silent = nil
	}
}

// Restart ends and starts it again. What ran is interrupted; without memory
// it has forgotten every task.
func (a *Agent) Restart(memory bool) {
	a.Down()
	a.Forget(memory)
	a.Up()
}

// Forget interrupts what runs, and without memory forgets every task, as a
// restart does.
func (a *Agent) Forget(memory bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.execs {
		a.end(e, End{State: "failed", Error: &api.AgentError{Type: "interrupted", Message: "the agent was restarted"}})
		e.forgotten = e.forgotten || !memory
	}
}

// Close ends it for good. The test's end calls it.
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

// change tells those who wait that something is new; the caller holds mu.
func (a *Agent) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// patience is how long Await waits before the test fails: long enough for a
// loaded machine.
const patience = 20 * time.Second

// Await waits until ok says so. ok is called whenever the log changes.
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
