package httpapi_test

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

// others are directors over one store, each behind a listener of its own and
// with a dispatcher of its own, which follows nothing but what a test says.
type others struct {
	t     *testing.T
	world *peerstest.World
	all   []*member
}

// member is one of them.
type member struct {
	*box
	view  *peerstest.View
	peers *fakePeers
	serve atomic.Pointer[http.Handler]
}

// fakePeers reads who lives and holds what from the store, as it stands.
type fakePeers struct {
	store store.Store
	self  store.Director
	over  atomic.Bool // its lease
}

func (p *fakePeers) Self() store.Director {
	self := p.self
	if p.over.Load() {
		self.Expires = time.Now().Add(-time.Second)
	}
	return self
}

func (p *fakePeers) Others() []store.Director {
	rows, err := p.store.Directors(context.Background())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(d store.Director) bool { return d.ID == p.self.ID || !d.Alive(time.Now()) })
}

func (p *fakePeers) HolderOf(ctx context.Context, agent string) (store.Director, bool) {
	holders, err := p.store.Holders(ctx)
	if err != nil {
		return store.Director{}, false
	}
	rows, err := p.store.Directors(ctx)
	at := slices.IndexFunc(rows, func(d store.Director) bool { return d.ID == holders[agent] && d.Alive(time.Now()) })
	if err != nil || at < 0 {
		return store.Director{}, false
	}
	return rows[at], true
}

// newOthers starts directors: alfa, bravo, …
func newOthers(t *testing.T, n int, change ...func(*options)) *others {
	t.Helper()
	r := &others{t: t, world: peerstest.New(memory.New(memory.Options{}))}
	for _, name := range []string{"alfa", "bravo", "charlie"}[:n] {
		r.add(name, change...)
	}
	return r
}

func (r *others) add(name string, change ...func(*options)) *member {
	r.t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		r.t.Fatal(err)
	}
	m := &member{box: &box{t: r.t, runs: newFakeRuns(), live: &fakeLive{}}, view: r.world.View()}
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { (*m.serve.Load()).ServeHTTP(w, q) }))
	m.peers = &fakePeers{store: m.view, self: store.Director{
		ID: name, Run: name + "-1", URL: m.server.URL, Version: "1.0.0", Key: "k", StartedAt: time.Now().UTC().Truncate(time.Millisecond),
	}}
	o := options{engine: engine.Options{Sealer: sealer}, director: httpapi.Config{Runs: m.runs, Version: "1.0.0", Peers: m.peers}}
	for _, f := range change {
		f(&o)
	}
	m.engine = engine.New(m.view, o.engine)
	m.engine.SetLive(m.live)
	o.director.Engine = m.engine
	if m.id, err = identity.New(r.t.Context(), m.view, identity.Options{
		Static: o.director.Token, Now: m.engine.Now, Cost: identity.Cost{MemoryKiB: 8, Passes: 1}, Shared: true,
	}); err != nil {
		r.t.Fatal(err)
	}
	o.director.Identity = m.id
	if m.dir, err = httpapi.New(o.director); err != nil {
		r.t.Fatal(err)
	}
	handler := m.dir.Handler()
	m.serve.Store(&handler)
	m.beat()
	ctx, cancel := context.WithCancel(context.Background())
	if err := m.engine.Follow(ctx, m.view, engine.FollowOptions{NeedsRow: func(*signalbox.Entry) bool { return true }}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		m.dir.Stop()
		if mcp, ok := o.director.MCP.(io.Closer); ok {
			mcp.Close()
		}
		m.dir.WaitTerminals()
		http.DefaultClient.CloseIdleConnections()
		m.server.CloseClientConnections()
		m.server.Close()
		cancel()
	})
	r.all = append(r.all, m)
	return m
}

// beat renews the lease for longer than a test lasts, and takes agents.
func (m *member) beat(take ...string) {
	m.t.Helper()
	m.peers.self.Expires = time.Now().Add(time.Hour)
	if _, err := m.view.Beat(m.t.Context(), store.Beat{Director: m.peers.self, Take: take, Now: time.Now()}); err != nil {
		m.t.Fatal(err)
	}
}

// kill takes a director away without a word; its lease still holds.
func (m *member) kill() {
	m.server.CloseClientConnections()
	m.server.Close()
	m.dir.Stop()
}

// expire ends the lease, as the store sees it.
func (m *member) expire() {
	m.t.Helper()
	row := m.peers.self
	row.Expires = time.Now().Add(-time.Minute)
	if _, err := m.view.Beat(context.Background(), store.Beat{Director: row, Now: time.Now()}); err != nil {
		m.t.Fatal(err)
	}
}

// holds makes an agent known to all, and this director the one that dispatches
// to it.
func (r *others) holds(m *member, agent string) signalbox.Agent {
	r.t.Helper()
	a := m.talker(agent, 1)
	for _, other := range r.all {
		other.live.set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	}
	m.beat(agent)
	return a
}

// runs has the agent of a director work on a task that came in at another one.
func (r *others) works(in, at *member, a signalbox.Agent) signalbox.Task {
	r.t.Helper()
	made := in.submit(`{"prompt":"p","agent":"` + a.Name + `"}`)
	t := at.work(a)
	if t.ID != made.QueueID {
		r.t.Fatalf("%s works on %s, not %s", a.Name, t.ID, made.QueueID)
	}
	at.runs.print(t.ID, "")
	return t
}

// over sends a request over a real connection.
func (m *member) over(method, path, body string, edits ...edit) reply {
	m.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, m.server.URL+path, in)
	if err != nil {
		m.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edits {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return reply{Response: resp, body: data}
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
