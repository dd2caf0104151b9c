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

// Cluster are directors over one store, each behind a listener of its own and
// with a dispatcher of its own, which follows nothing but what a test says.
type Cluster struct {
	t       *testing.T
	world   *peerstest.World
	Members []*Member
}

// Member is one of them.
type Member struct {
	*Fixture
	View  *peerstest.View
	Peers *Peers
	Serve atomic.Pointer[http.Handler]
}

// Peers reads who lives and holds what from the store, as it stands.
type Peers struct {
	Store     store.Store
	Row       store.Director // this director
	LeaseOver atomic.Bool    // its lease has run out
}

func (p *Peers) Self() store.Director {
	self := p.Row
	if p.LeaseOver.Load() {
		self.Expires = time.Now().Add(-time.Second)
	}
	return self
}

func (p *Peers) Others() []store.Director {
	rows, err := p.Store.Directors(context.Background())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(d store.Director) bool { return d.ID == p.Row.ID || !d.Alive(time.Now()) })
}

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

// NewCluster starts directors: alfa, bravo, …
func NewCluster(t *testing.T, n int, change ...func(*Options)) *Cluster {
	t.Helper()
	r := &Cluster{t: t, world: peerstest.New(memory.New(memory.Options{}))}
	for _, name := range []string{"alfa", "bravo", "charlie"}[:n] {
		r.Add(name, change...)
	}
	return r
}

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
	if err := m.Engine.Follow(ctx, m.View, engine.Following{Rows: func(*signalbox.Entry) bool { return true }}); err != nil {
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

// Beat renews the lease for longer than a test lasts, and takes agents.
func (m *Member) Beat(take ...string) {
	m.T.Helper()
	m.Peers.Row.Expires = time.Now().Add(time.Hour)
	if _, err := m.View.Beat(m.T.Context(), store.Beat{Director: m.Peers.Row, Take: take, Now: time.Now()}); err != nil {
		m.T.Fatal(err)
	}
}

// Kill takes a director away without a word; its lease still holds.
func (m *Member) Kill() {
	m.HTTP.CloseClientConnections()
	m.HTTP.Close()
	m.Server.Stop()
}

// ExpireLease ends the lease, as the store sees it.
func (m *Member) ExpireLease() {
	m.T.Helper()
	row := m.Peers.Row
	row.Expires = time.Now().Add(-time.Minute)
	if _, err := m.View.Beat(context.Background(), store.Beat{Director: row, Now: time.Now()}); err != nil {
		m.T.Fatal(err)
	}
}

// Hold makes an agent known to all, and this director the one that dispatches
// to it.
func (r *Cluster) Hold(m *Member, agent string) signalbox.Agent {
	r.t.Helper()
	a := m.AddChatAgent(agent, 1)
	for _, other := range r.Members {
		other.Live.Set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	}
	m.Beat(agent)
	return a
}

// RunTask has the agent of a director work on a task that came in at another one.
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

// Request sends a request over a real connection.
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

func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// SoonAcrossDirectors bounds what is promised within two seconds, on a machine that is
// busy.
const SoonAcrossDirectors = 10 * time.Second
