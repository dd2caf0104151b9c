package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// Cluster is several directors that share a store, each with its own listener and its
// own fake dispatcher.
type Cluster struct {
	t       *testing.T
	world   *peerstest.World
	Members []*Member
}

// Member is a director of a cluster.
type Member struct {
	*Fixture
	View  *peerstest.View
	Peers *Peers
	Serve atomic.Pointer[http.Handler] // what its listener serves
}

// Peers reads from the store which directors are alive and which agents they hold.
type Peers struct {
	Store     store.Store
	Row       store.Director // this director
	LeaseOver atomic.Bool    // makes Self report an expired lease
}

// Self is the row of this director.
func (p *Peers) Self() store.Director {
	self := p.Row
	if p.LeaseOver.Load() {
		self.Expires = time.Now().Add(-time.Second)
	}
	return self
}

// Others are the other directors that are alive.
func (p *Peers) Others() []store.Director {
	rows, err := p.Store.Directors(context.Background())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(d store.Director) bool { return d.ID == p.Row.ID || !d.Alive(time.Now()) })
}

// HolderOf is the live director that holds an agent.
func (p *Peers) HolderOf(ctx context.Context, agent string) (store.Director, bool) {
	holders, err := p.Store.Holders(ctx)
	if err != nil {
		return store.Director{}, false
	}
	rows, err := p.Store.Directors(ctx)
	at := slices.IndexFunc(rows, func(d store.Director) bool { return d.ID == holders[agent] && d.Alive(time.Now()) })
	if err != nil || at < 0 {
		return store.Director{}, false
	}
	return rows[at], true
}

// NewCluster starts up to three directors: alfa, bravo and charlie.
func NewCluster(t *testing.T, n int, change ...func(*Options)) *Cluster {
	t.Helper()
	r := &Cluster{t: t, world: peerstest.New(memory.New(memory.Options{}))}
	for _, name := range []string{"alfa", "bravo", "charlie"}[:n] {
		r.Add(name, change...)
	}
	return r
}

// Add starts another director.
func (r *Cluster) Add(name string, change ...func(*Options)) *Member {
	r.t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		r.t.Fatal(err)
	}
	m := &Member{Fixture: &Fixture{T: r.t, Runs: NewRuns(), Live: &Live{}}, View: r.world.View()}
	m.HTTP = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { (*m.Serve.Load()).ServeHTTP(w, q) }))
	m.Peers = &Peers{Store: m.View, Row: store.Director{
		ID: name, Run: name + "-1", URL: m.HTTP.URL, Version: "1.0.0", Key: "k", StartedAt: time.Now().UTC().Truncate(time.Millisecond),
	}}
	o := Options{Engine: engine.Options{Sealer: sealer}, Config: httpapi.Config{Runs: m.Runs, Version: "1.0.0", Peers: m.Peers}}
	for _, f := range change {
		f(&o)
	}
	m.Engine = engine.New(m.View, o.Engine)
	m.Engine.SetLive(m.Live)
	o.Config.Engine = m.Engine
	if m.Identity, err = identity.New(r.t.Context(), m.View, identity.Options{
		Static: o.Config.Token, Now: m.Engine.Now, Cost: identity.Cost{MemoryKiB: 8, Passes: 1}, Shared: true,
	}); err != nil {
		r.t.Fatal(err)
	}
	o.Config.Identity = m.Identity
	if m.Server, err = httpapi.New(o.Config); err != nil {
		r.t.Fatal(err)
	}
	handler := m.Server.Handler()
	m.Serve.Store(&handler)
	m.Beat()
	ctx, cancel := context.WithCancel(context.Background())
	if err := m.Engine.Follow(ctx, m.View, engine.FollowOptions{NeedsRow: func(*signalbox.Entry) bool { return true }}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		m.Server.Stop()
		if mcp, ok := o.Config.MCP.(io.Closer); ok {
			mcp.Close()
		}
		m.Server.WaitTerminals()
		http.DefaultClient.CloseIdleConnections()
		m.HTTP.CloseClientConnections()
		m.HTTP.Close()
		cancel()
	})
	r.Members = append(r.Members, m)
	return m
}

// Beat renews the lease for longer than a test lasts, and takes over the given agents.
func (m *Member) Beat(take ...string) {
	m.T.Helper()
	m.Peers.Row.Expires = time.Now().Add(time.Hour)
	if _, err := m.View.Beat(m.T.Context(), store.Beat{Director: m.Peers.Row, Take: take, Now: time.Now()}); err != nil {
		m.T.Fatal(err)
	}
}

// Kill stops a director without ending its lease.
func (m *Member) Kill() {
	m.HTTP.CloseClientConnections()
	m.HTTP.Close()
	m.Server.Stop()
}

// ExpireLease makes the lease expire in the store.
func (m *Member) ExpireLease() {
	m.T.Helper()
	row := m.Peers.Row
	row.Expires = time.Now().Add(-time.Minute)
	if _, err := m.View.Beat(context.Background(), store.Beat{Director: row, Now: time.Now()}); err != nil {
		m.T.Fatal(err)
	}
}

// Hold adds an agent, up at all directors, and lets m hold it.
func (r *Cluster) Hold(m *Member, agent string) signalbox.Agent {
	r.t.Helper()
	a := m.AddChatAgent(agent, 1)
	for _, other := range r.Members {
		other.Live.Set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	}
	m.Beat(agent)
	return a
}

// RunTask submits a task at one director and runs it on an agent of another one.
func (r *Cluster) RunTask(in, at *Member, a signalbox.Agent) signalbox.Task {
	r.t.Helper()
	made := in.Submit(`{"prompt":"p","agent":"` + a.Name + `"}`)
	t := at.Run(a)
	if t.ID != made.QueueID {
		r.t.Fatalf("%s works on %s, not %s", a.Name, t.ID, made.QueueID)
	}
	at.Runs.Print(t.ID, "")
	return t
}

// Request sends a request over a TCP connection.
func (m *Member) Request(method, path, body string, edits ...Edit) Reply {
	m.T.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(m.T.Context(), Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, m.HTTP.URL+path, in)
	if err != nil {
		m.T.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edits {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		m.T.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		m.T.Fatal(err)
	}
	return Reply{Response: resp, Body: data}
}

// Decode decodes JSON.
func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// SoonAcrossDirectors is the limit, on a busy machine, for what is promised within two
// seconds.
const SoonAcrossDirectors = 10 * time.Second
