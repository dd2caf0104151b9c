package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/chaos"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Two directors over one server, two agents that they call, two agents that
// pull, a tool that both directors share, and callers. A proxy on every
// connection breaks the traffic in every way it knows, under load. Then the
// network heals, and the records must show that every acknowledged task ended
// exactly once, that no agent ran two tasks at the same time, and that the tool
// never had more calls than its queue allows.
type storm struct {
	*crash
	legs    map[string][]*chaos.Proxy
	through []*client.Client // through the proxies
	past    []*client.Client // without proxies
	bench   *workbench
	over    atomic.Bool
	read    atomic.Int64 // outputs that a director returned
}

// The connections with a proxy.
const (
	legCallers   = "callers to directors"
	legStore     = "directors to their store"
	legDirectors = "director to director"
	legAgents    = "directors to agents"
	legPulling   = "agents that pull to directors"
	legTool      = "gateways to the tool"
)

// stormy is how bad the network is, and for how long at least.
func stormy() (chaos.Options, time.Duration) {
	if soak.On() {
		return chaos.Options{Pace: 400 * time.Millisecond, Length: 4 * time.Second}, 5 * time.Minute
	}
	return chaos.Options{Pace: 120 * time.Millisecond, Length: 500 * time.Millisecond}, time.Second
}

func TestEveryNetworkIsBrokenPostgres(t *testing.T) {
	soak.Only(t, "what two directors do when only PostgreSQL's connections break")
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	weather(t, server.Database(t))
}

func TestEveryNetworkIsBrokenRedis(t *testing.T) {
	weather(t, testserver.NewRedis(t, testserver.RedisOptions{}).URL())
}

func weather(t *testing.T, store string) {
	s := newStorm(t, store)
	_, least := stormy()
	began := time.Now()
	var load sync.WaitGroup
	for n := range crashSubmitters {
		load.Go(func() { s.submitting(n) })
	}
	for n := range 3 {
		load.Go(func() { s.calling(n) })
	}
	load.Go(s.reading)
	testkit.Within(2*long+least, func() bool { return t.Failed() || time.Since(began) > least && len(s.unseen()) == 0 })
	for _, proxies := range s.legs {
		for _, p := range proxies {
			p.Heal()
		}
	}
	s.over.Store(true)
	load.Wait()
	if t.Failed() {
		return
	}
	s.check(began)
}

func newStorm(t *testing.T, store string) *storm {
	seed := seedOf(t)
	s := &storm{crash: &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seed, 4))}, legs: map[string][]*chaos.Proxy{}}
	s.patientLimits()
	s.silence = true
	s.vars["SIGNALBOX_SECRET_KEY"] = testKey
	// A server behind a proxy cannot prove itself, so the token is configured for
	// all.
	const token = "a-token-of-some-length-0123456789"
	s.vars["SIGNALBOX_TOKEN"], s.vars["SIGNALBOX_AGENT_TOKEN"], s.vars["SIGNALBOX_PROOF"] = token, token, "off"
	s.bench = newWorkbench(t)
	tool := s.leg(legTool, s.bench.Listener.Addr().String())
	tools := s.file("shop.yaml", "queues:\n  default: {concurrent: 64}\n  shop: {concurrent: 2, shared: true}\n"+
		"restTools:\n  work: {method: POST, url: 'http://"+tool+"/work', queue: shop, timeout: 20, "+
		"parametersSchema: {type: object, properties: {id: {type: string}}}}\n", 0o600)
	config := "execution_ttl: 3s\ndiscover: off\nagents:\n"
	for n := range 2 {
		name, at := fmt.Sprintf("reached-%d", n), freePort(t)
		config += fmt.Sprintf("  - {name: %s, kind: demo, url: 'http://%s', token: %s}\n", name, s.leg(legAgents, at), token)
		// Discovery finds no director: it is in the configuration.
		s.addAgentAt(name, "http://127.0.0.1:1", s.root, at)
	}
	file := s.file("storm.yaml", config, 0o600)
	for n := range 2 {
		s.addStormDirector(fmt.Sprintf("director-%d", n), store, file, tools)
	}
	for n := range 2 {
		at := strings.TrimPrefix(s.past[n].URL(), "http://")
		s.addPulling(fmt.Sprintf("pulling-%d", n), "http://"+s.leg(legPulling, at))
	}
	s.c = s.past[0]
	s.j = s.journal(s.through[0])
	return s
}

// leg puts a proxy in front of an address, and returns the proxy's address.
func (s *storm) leg(name, to string) string {
	o, _ := stormy()
	o.Seed = s.rng.Uint64()
	if name == legStore || name == legTool {
		// Neither server recognizes a repeated request, and TCP never delivers data
		// twice.
		o.Faults = slices.DeleteFunc(slices.Clone(chaos.Faults), func(f chaos.Fault) bool { return f == chaos.Duplicate })
	}
	p := chaos.New(s.t, to, o)
	s.legs[name] = append(s.legs[name], p)
	return p.Addr
}

// addStormDirector starts a director that the others, its callers and it
// itself reach through proxies.
func (s *storm) addStormDirector(name, store, config, tools string) {
	u, err := url.Parse(store)
	if err != nil {
		s.t.Fatal(err)
	}
	u.Host = s.leg(legStore, u.Host)
	addr := freePort(s.t)
	r := &role{b: s.box, name: name, died: deaths{}, env: []string{"SIGNALBOX_STORE=" + u.String()}}
	r.args = []string{
		"director", "--addr", addr, "--advertise", "http://" + s.leg(legDirectors, addr), "--instance", name,
		"--data", filepath.Join(s.root, name), "--config", config, "--tools", tools,
	}
	s.until(name+" has begun", func() bool { // its store fails while it starts
		r.start()
		return r.p.printed("http://")
	})
	s.directors = append(s.directors, r)
	s.past = append(s.past, s.client("http://"+addr))
	s.through = append(s.through, s.client("http://"+s.leg(legCallers, addr)))
}

func (s *storm) addPulling(name, director string) {
	r := &role{b: s.box, name: name, died: deaths{}, env: []string{"SIGNALBOX_EXEC_LOG=" + s.execLogOf(&role{name: name})}}
	r.args = []string{"agent", "--name", name, "--kind", "demo", "--pull", "--director", director, "--data", filepath.Join(s.root, name)}
	r.start()
	s.agents = append(s.agents, r)
}

// unseen are the faults that have not occurred on a connection yet.
func (s *storm) unseen() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.legs)) {
		seen := map[chaos.Fault]int{}
		for _, p := range s.legs[name] {
			for f, n := range p.Seen() {
				seen[f] += n
			}
		}
		for _, f := range s.legs[name][0].Faults() {
			if seen[f] == 0 {
				list = append(list, name+": "+string(f))
			}
		}
	}
	return list
}

// check checks what became of everything.
func (s *storm) check(began time.Time) {
	s.t.Helper()
	if left := s.unseen(); len(left) > 0 {
		s.t.Errorf("faults that never struck: %s", strings.Join(left, ", "))
	}
	struck := 0
	for name, proxies := range s.legs {
		n := 0
		for _, p := range proxies {
			for _, times := range p.Seen() {
				n += times
			}
		}
		struck += n
		s.t.Logf("%s: %d faults", name, n)
	}
	s.t.Logf("%d faults, %d outputs read, %s", struck, s.read.Load(), time.Since(began).Round(time.Second))
	ended := s.wantAllAcknowledged()
	s.wantCancels(ended)
	s.wantCapacity()
	for _, r := range s.directors {
		r.stop()
	}
}
