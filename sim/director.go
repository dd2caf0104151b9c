package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	exec "github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/seal"
)

const (
	ttl          = 6 * time.Second
	sessionGrace = 6 * time.Second
	maxSize      = 8
)

// director is one incarnation of a director, with the real engine and dispatcher.
type director struct {
	w           *world
	n           int // which one of several
	incarnation int
	dead        atomic.Bool
	ready       bool
	engine      *engine.Engine
	d           *push.Dispatcher
	lanes       *pull.Lanes
	stop        context.CancelFunc

	mu     sync.Mutex
	agents map[string]bool // agents
}

func (d *director) isDead() bool { return d.dead.Load() }

func (d *director) name() string { return "d" + strconv.Itoa(d.n) }

// errGone is the error that a dead director gets from its store.
var errGone = signalbox.Errorf(signalbox.CodeStoreFailed, "the director is dead")

// random is a seeded source for IDs and jitter.
type random struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

// setUp makes the agents and directors of a history.
func (w *world) setUp() {
	shapes := []agent{
		{name: "a", slots: 1, isolated: w.rng.IntN(3), sessions: true},
		{name: "b", slots: 1, plain: true, sloppy: w.oneIn(2)},
		{name: "c", slots: 2, isolated: 1, cancelsSlowly: w.oneIn(2)},
	}
	if w.oneIn(3) {
		shapes = append(shapes, agent{name: "p", slots: 1 + w.rng.IntN(2), isolated: w.rng.IntN(2), pulls: true})
	}
	for i := range shapes {
		a := &shapes[i]
		a.w, a.fences, a.talks, a.changed = w, map[slot]int64{}, map[string]time.Time{}, make(chan struct{})
		w.agents = append(w.agents, a)
		row := signalbox.Agent{Name: a.name, Kind: []string{"red", "blue"}[i%2], URL: a.url(), Slots: a.slots, Fencing: !a.plain, Source: signalbox.AgentFromConfig, CreatedAt: w.now()}
		if a.pulls {
			row.URL, row.Source = signalbox.PullURL(instance), signalbox.AgentPull
			go a.pullLoop()
		}
		if err := w.store.PutAgent(context.Background(), row, signalbox.Entry{At: w.now(), Kind: signalbox.EventAgentAdded, Agent: a.name}); err != nil {
			w.fail("an agent was not stored: %v", err)
		}
	}
	w.setUpLogins()
	several := w.oneIn(3)
	if several {
		w.town, w.pauseRate = peerstest.New(w.store), []int{4, 40}[w.rng.IntN(2)]
	}
	fleet := 0
	if w.oneIn(4) {
		fleet = 2
	}
	w.book.fleet = fleet
	w.startDirector(0)
	if several {
		w.startDirector(1)
	}
}

func (w *world) startDirector(n int) *director {
	d := &director{w: w, n: n, agents: map[string]bool{}}
	if len(w.directors) > n {
		d.incarnation = w.directors[n].incarnation + 1
		w.directors[n] = d
	} else {
		w.directors = append(w.directors, d)
	}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	under := w.store
	var view *peerstest.View
	if w.town != nil {
		view = w.town.View()
		under = view
	}
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		panic(err) // the key is as long as keys are
	}
	var key [32]byte
	copy(key[:], fmt.Sprintf("%d %d %d", w.rng.Uint64(), n, d.incarnation))
	d.engine = engine.New(&checkedStore{Store: failpoint.Wrap(under, d.write, d.read), d: d, store: under}, engine.Options{
		MaxSize: maxSize, ExecutionTTL: ttl, Fleet: w.book.fleet, Now: w.wall, Sealer: sealer, Random: &random{src: rand.NewChaCha8(key)},
	})
	both := exec.Options{SessionGrace: sessionGrace, RunGrace: 5 * time.Second, Turn: d.turn, Backstop: &exec.Backstop{}}
	if view != nil {
		both.Holds = d.holds
	}
	o := push.Options{
		Options: both, DispatchTimeout: 5 * time.Second, PollInterval: time.Second, FollowWait: 5 * time.Second, AskTimeout: 3 * time.Second,
		Probe: 2 * time.Second, Transport: &network{w, d},
	}
	if view != nil {
		o.Generation = view.Generation
	}
	d.d = push.New(d.engine, o)
	d.lanes = pull.New(d.engine, pull.Options{Options: both, Silence: 2 * ttl})
	go d.start(ctx, view)
	return d
}

// start begins to dispatch, unless the store fails.
func (d *director) start(ctx context.Context, view *peerstest.View) {
	w := d.w
	defer w.scheduler.publish()
	w.scheduler.turn(d.name()+" start", "start", d.isDead)
	if d.isDead() {
		return
	}
	if view != nil {
		follow := engine.FollowOptions{NeedsRow: d.wantsAgent, OnGap: d.ownerOf, OnPoll: func() { w.scheduler.turn(d.name()+" follow", "look", d.isDead) }}
		if err := d.engine.Follow(ctx, view, follow); err != nil {
			w.kill(d)
			return
		}
	}
	if err := d.d.Start(ctx); err != nil {
		w.kill(d) // the process exits: it cannot start without its store
		return
	}
	if err := d.lanes.Start(ctx); err != nil {
		w.kill(d)
		return
	}
	if d.isDead() {
		return
	}
	d.ready = true
	if view != nil {
		w.moveAgent(d)
	}
}

// wantsAgent and ownerOf are used if several directors know an agent.
func (d *director) wantsAgent(e *signalbox.Entry) bool { return d.d.NeedsRow(e) || d.lanes.NeedsRow(e) }

func (d *director) ownerOf() {
	d.d.Resync()
	d.lanes.Resync()
}

// moveAgent gives a director the agents without a live holder or, sometimes, an agent of another director.
func (w *world) moveAgent(to *director) {
	if w.moveRate.Swap(true) {
		return // one at a time, as directors agree by their beats; what is left is adopted
	}
	defer w.moveRate.Store(false)
	var gained []string
	for _, a := range w.agents {
		n, held := w.holder[a.name]
		from := w.directors[n]
		switch {
		case held && n == to.n && to.holds(a.name):
			continue
		case held && n != to.n && !from.isDead() && from.holds(a.name):
			if !w.oneIn(2) || !from.ready {
				continue
			}
			from.take(a.name, false)
			w.scheduler.publish()
			from.d.Lost([]string{a.name})
			if to.isDead() {
				return
			}
		}
		w.holder[a.name] = to.n
		gained = append(gained, a.name)
		to.take(a.name, true)
	}
	w.note("hand over to", to.name(), fmt.Sprint(gained))
	to.d.Gained(gained)
}

func (d *director) holds(agent string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.agents[agent]
}

func (d *director) take(agent string, held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents[agent] = held
}

// turn makes goroutines of the dispatcher wait for the scheduler.
func (d *director) turn(what, of string, fence int64) {
	name := d.name() + " " + what + " " + of
	if fence != 0 {
		name += "/" + strconv.FormatInt(fence, 10)
	}
	d.w.scheduler.turn(name, "go on", d.isDead)
}

// kill ends a director like kill -9: nothing that it does counts any more.
func (w *world) kill(d *director) {
	if d.dead.Swap(true) {
		return
	}
	if w.paused == d {
		w.paused = nil
		w.scheduler.freeze("")
	}
	d.stop()
	go d.d.Stop()
	go d.lanes.Stop()
}

// alive lists the directors that can be called.
func (w *world) alive() []*director {
	var list []*director
	for _, d := range w.directors {
		if d.ready && !d.isDead() {
			list = append(list, d)
		}
	}
	return list
}
