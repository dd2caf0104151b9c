package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// The crash test: tasks are submitted while director and agents are killed
// with kill -9 at random and restarted.
const (
	crashAgents     = 3
	crashSubmitters = 4
)

// sent is a task as its submitter knows it.
type sent struct {
	id     string
	onLost string
	cancel bool      // a cancel was requested
	before time.Time // when it was first sent
	after  time.Time // when it was acknowledged
}

// role is a process that is killed and restarted with the same command line.
type role struct {
	b    *box
	name string
	env  []string
	args []string
	// program is the program to start; "" is the binary under test.
	program string
	p       *process
	all     []*process // this one and the earlier ones
	died    deaths
}

func (r *role) start() {
	r.p = launchProgram(r.b.t, cmp.Or(r.program, binary), r.b.work, r.b.environ(r.env...), r.args...)
	r.all = append(r.all, r.p)
}

// stop stops it as a service manager does, once it serves: a process that has
// just started dies of the signal itself.
func (r *role) stop() {
	r.p.prints("Signalbox ")
	r.p.stop()
}

// untilServes restarts it, as a service manager does, if it exited because its
// store was unreachable at the start.
func (r *role) untilServes() {
	for !r.p.printed("Signalbox ") {
		select {
		case <-r.p.done:
			r.start()
		default:
			r.b.t.Errorf("%s neither serves nor ends", r.name)
			return
		}
	}
}

func (r *role) kill() {
	r.p.kill()
	r.died.add(r.p.pid())
}

// crash is a run of the crash test.
type crash struct {
	*box
	c         *client.Client
	rng       *rand.Rand
	directors []*role
	agents    []*role
	j         *journal
	silence   bool // agents may be silent for longer than the slot lease

	mu    sync.Mutex
	tasks []sent
}

func TestNothingIsLostWhenEverythingIsKilled(t *testing.T) {
	c := newCrash(t)
	tasks := soak.Pick(240, 5000) // multiples of crashSubmitters
	var submitters sync.WaitGroup
	for n := range crashSubmitters {
		submitters.Go(func() { c.submitMany(n, tasks/crashSubmitters) })
	}
	killed := make(chan int)
	go func() { killed <- c.wreck(tasks) }()
	submitters.Wait()
	n := <-killed
	if t.Failed() {
		return
	}
	ended := map[string]api.Task{}
	for _, s := range c.tasks {
		ended[s.id] = c.end(c.c, s.id)
	}
	c.quiet()
	t.Logf("%d tasks, %d kills, %d events", len(c.tasks), n, len(c.j.all()))
	c.wantOneEndEach(tasks, ended)
	runs := c.wantNoOverlap()
	c.wantGrowingFences(runs, ended)
	c.wantOrder()
	c.wantQuietLog()
	for _, r := range slices.Concat(c.agents, c.directors) {
		r.p.stop()
	}
}

// seedOf returns the seed of a test's random choices, and logs it.
func seedOf(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SIGNALBOX_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SIGNALBOX_SEED=%d", seed)
	return seed
}

func newCrash(t *testing.T) *crash {
	seed := seedOf(t)
	c := &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seed, 1))}
	c.patientLimits()
	url := c.addDirector("director", []string{"--data", c.data})
	for n := range crashAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), url, c.root)
	}
	c.c = c.client(url)
	c.j = c.journal(c.c)
	return c
}

// patientLimits make everything wait and nothing give up: an agent that is
// down refuses connections, which costs attempts, but these tests are about
// lost tasks.
func (c *crash) patientLimits() {
	c.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "100000"
	c.vars["SIGNALBOX_QUEUE_MAX_ATTEMPTS"] = "1000"
}

// addDirector starts another director and returns its URL.
func (c *crash) addDirector(name string, args []string) string {
	addr := freePort(c.t)
	r := &role{b: c.box, name: name, died: deaths{}}
	r.args = append([]string{"director", "--addr", addr}, args...)
	r.start()
	r.p.prints("http://")
	c.directors = append(c.directors, r)
	return "http://" + addr
}

// addAgent starts another agent, whose folder is in dir. Its log of
// executions is not: it is evidence, not under test.
func (c *crash) addAgent(name, url, dir string) { c.addAgentAt(name, url, dir, freePort(c.t)) }

func (c *crash) addAgentAt(name, url, dir, addr string) {
	r := &role{b: c.box, name: name, died: deaths{}}
	r.env = []string{"SIGNALBOX_EXEC_LOG=" + c.execLogOf(r)}
	r.args = c.agentLine(name, url, []string{"--addr", addr, "--data", filepath.Join(dir, name)})
	r.start()
	c.agents = append(c.agents, r)
}

func (c *crash) execLogOf(r *role) string { return filepath.Join(c.root, "exec-"+r.name+".jsonl") }

// submitMany submits n tasks.
func (c *crash) submitMany(who, n int) {
	c.submitWhile(who, func(i int) bool { return i < n })
}

// submitWhile submits one task after another, every other one with on_lost:
// requeue.
func (c *crash) submitWhile(who int, more func(i int) bool) {
	for i := 0; more(i); i++ {
		sleep := "10ms"
		if i%20 == 7 { // long enough to be hit with certainty
			sleep = "200ms"
		}
		prompt := fmt.Sprintf("sleep %s: task %d of %d", sleep, i, who)
		if _, ok := c.submitOne(c.c, sent{onLost: []string{"requeue", "fail"}[i%2]}, prompt); !ok {
			return
		}
	}
}

// room waits until only few tasks wait, so that the test does not take longer
// than the faults, and reports whether more are wanted.
func (c *crash) room(over *atomic.Bool, most int) bool {
	for !over.Load() && !c.t.Failed() {
		c.mu.Lock()
		all := len(c.tasks)
		c.mu.Unlock()
		if c.j.await(50*time.Millisecond, func(e []api.Event) bool { return all-ends(e) < most }) {
			return true
		}
	}
	return false
}

// submitOne submits a task until it is acknowledged, always with the same
// key.
func (c *crash) submitOne(by *client.Client, s sent, prompt string) (sent, bool) {
	s.before = time.Now()
	req := api.SubmitRequest{Prompt: prompt, OnLost: s.onLost}
	opts := client.SubmitOptions{IdempotencyKey: client.NewIdempotencyKey()}
	var got api.SubmitResponse
	var err error
	testkit.Within(10*long, func() bool {
		got, err = by.Submit(c.t.Context(), req, opts)
		return !awayFor(err) // otherwise the director or its store is down: retry
	})
	if err != nil {
		c.t.Errorf("%s: %v", prompt, err)
		return s, false
	}
	s.id, s.after = got.QueueID, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, s)
	return s, true
}

// awayFor reports whether a submit could not be accepted at the time.
func awayFor(err error) bool {
	code := client.Code(err)
	return client.IsUnreachable(err) || code == string(signalbox.CodeStoreFailed) || code == string(signalbox.CodeUnavailable)
}

// wreck kills a process each time some more events have happened, until most
// tasks have ended. It returns the number of kills.
func (c *crash) wreck(tasks int) int {
	kills := 0
	for !c.t.Failed() {
		events := c.j.all()
		if ends(events) > tasks*9/10 {
			break
		}
		// Events are the clock, so that kills hit all phases on fast and slow
		// machines. If nothing happens because too much is down, time passes.
		next := len(events) + 1 + c.rng.IntN(60)
		c.j.await(2*time.Second, func(e []api.Event) bool { return len(e) >= next })
		victims := []*role{c.directors[c.rng.IntN(len(c.directors))]}
		agent := c.agents[c.rng.IntN(len(c.agents))]
		switch c.rng.IntN(10) {
		case 0: // all at once
			victims = slices.Concat(c.directors, c.agents)
		case 1: // the director and an agent
			victims = append(victims, agent)
		case 2, 3, 4: // an agent
			victims = []*role{agent}
		case 5, 6, 7: // an agent that has just begun a task
			c.j.await(time.Second, func(e []api.Event) bool {
				last := e[len(e)-1]
				return len(e) > next && last.Kind == "accept" && last.Agent == agent.name
			})
			victims = []*role{agent}
		}
		c.rng.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		for _, v := range victims {
			v.kill()
			kills++
		}
		time.Sleep(time.Duration(c.rng.IntN(200)) * time.Millisecond) // the downtime
		for _, v := range victims {
			v.start()
		}
	}
	for _, d := range c.directors {
		d.untilServes()
	}
	return kills
}

// ends counts the ended tasks.
func ends(events []api.Event) int {
	n := 0
	for _, e := range events {
		if e.QueueID != "" && signalbox.State(e.State).Terminal() {
			n++
		}
	}
	return n
}

// quiet waits until the test's journal contains everything that has happened:
// as many ends as tasks.
func (c *crash) quiet() {
	c.t.Helper()
	if !c.j.await(long, func(events []api.Event) bool { return ends(events) >= len(c.tasks) }) {
		c.t.Fatalf("%d ends in the journal, %d tasks", ends(c.j.all()), len(c.tasks))
	}
}
