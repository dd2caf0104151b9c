package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// pointed is the binary with failpoints, built on first use.
var pointed = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "signalbox-failpoints")
	return path, buildSignalbox(path, olderVersion, "-tags", "failpoints")
})

// failing is a director, an agent and a scheduler, in which each failpoint
// fires once with one action.
type failing struct {
	*box
	c         *client.Client
	j         *journal
	url, jobs string // of the director; of the scheduler
	director  *role
	agent     *role
	scheduler *role
	armed     map[string]failpoint.Action
	over      chan struct{} // closed when processes are no longer restarted
	kept      sync.WaitGroup

	mu     sync.Mutex
	acked  []string // acknowledged tasks
	deaths int
}

const failToken = "a-token-of-some-length-0123456789"

func newFailing(t *testing.T, rng *rand.Rand, round int) *failing {
	program, err := pointed()
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{box: newBox(t), armed: map[string]failpoint.Action{}, over: make(chan struct{})}
	for i, point := range failpoint.Points() {
		actions := failpoint.Actions(point)
		n := rng.IntN(len(actions))
		if round >= 0 { // each action in turn
			n = (i + round) % len(actions)
		}
		f.armed[point] = actions[n]
	}
	f.vars["SIGNALBOX_QUEUE_MAX_SIZE"], f.vars["SIGNALBOX_QUEUE_MAX_ATTEMPTS"] = "100000", "1000"
	f.vars["SIGNALBOX_TOKEN"], f.vars[failpoint.EnvFired] = failToken, filepath.Join(f.root, "fired")
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") }))
	t.Cleanup(tool.Close)
	addr := freePort(t)
	f.url, f.jobs = "http://"+addr, "http://"+freePort(t)
	config := f.file("signalbox.yaml", "execution_ttl: 4s\ndiscover: off\nqueues: {default: {concurrent: 4}}\n"+
		"restTools:\n  fetch: {description: fetches, method: GET, url: '"+tool.URL+"', parametersSchema: {type: object}}\n", 0o600)
	jobs := f.file("scheduler.yaml", "director_url: "+f.url+"\njobs:\n  - {name: nightly, schedule: '0 3 * * *', prompt: 'sleep 1ms: nightly', agent: demo}\n", 0o600)
	f.director = f.role(program, "director", f.server("director", []string{"--addr", addr, "--config", config}))
	f.agent = f.role(program, "demo", f.agentLine("demo", f.url, []string{"--addr", freePort(t), "--slots", "16", "--account", "team"}))
	f.scheduler = f.role(program, "scheduler", []string{"scheduler", "--config", jobs, "--data", filepath.Join(f.root, "scheduler"), "--addr", strings.TrimPrefix(f.jobs, "http://")})
	f.c = f.client(f.url)
	f.keep(f.director)
	if !testkit.Within(long, func() bool { _, err := f.c.Status(t.Context()); return err == nil }) {
		t.Fatalf("the director does not come up:\n%s", f.director.p.err.text())
	}
	f.j = f.journal(f.c)
	f.keep(f.agent)
	f.keep(f.scheduler)
	return f
}

func (f *failing) role(program, name string, args []string) *role {
	return &role{b: f.box, name: name, args: args, program: program, died: deaths{}}
}

// fired returns the actions that have fired, by failpoint.
func (f *failing) fired() map[string]failpoint.Action {
	done := map[string]failpoint.Action{}
	text, err := os.ReadFile(filepath.Join(f.root, "fired"))
	if err != nil && !os.IsNotExist(err) {
		f.t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		point, action, _ := strings.Cut(strings.TrimSpace(line), " ")
		done[point] = failpoint.Action(action)
	}
	return done
}

// left returns what has not fired yet, in the form of the environment
// variable.
func (f *failing) left() string {
	done := f.fired()
	var list []string
	for _, point := range slices.Sorted(maps.Keys(f.armed)) {
		if done[point] == "" {
			list = append(list, point+"="+string(f.armed[point]))
		}
	}
	return strings.Join(list, ",")
}

// keep starts a process, and restarts it whenever it has died, with the
// remaining failpoints.
func (f *failing) keep(r *role) {
	r.env = []string{failpoint.EnvPoints + "=" + f.left()}
	r.start()
	f.kept.Go(func() {
		for {
			p := r.p
			select {
			case <-p.done:
			case <-f.over:
				return
			}
			f.mu.Lock()
			f.deaths++
			r.died.add(p.pid())
			r.env = []string{failpoint.EnvPoints + "=" + f.left()}
			r.start()
			f.mu.Unlock()
		}
	})
}

// failStep is a part of the scenario: it is repeated until its failpoints have
// fired.
type failStep struct {
	names []string // of failpoints, without before and after
	do    func(context.Context, int) error
}

// points are the failpoints of a step.
func (s *failStep) points() (all []string) {
	for _, name := range s.names {
		all = append(all, name+".before", name+".after")
	}
	return all
}

// until repeats a step until its failpoints have fired.
func (f *failing) until(ctx context.Context, name string, s *failStep) {
	n, last := 0, error(nil)
	var missing []string
	testkit.Within(2*time.Minute, func() bool {
		done := f.fired()
		missing = slices.DeleteFunc(s.points(), func(p string) bool { return done[p] != "" })
		if len(missing) == 0 || ctx.Err() != nil {
			return true
		}
		once, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		if err := s.do(once, n); err != nil && ctx.Err() == nil {
			last = err
		}
		n++
		return false
	})
	if len(missing) > 0 {
		f.t.Errorf("after %d times %q the points %v have not fired; its last error: %v", n, name, missing, last)
	}
}

func (f *failing) ack(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked = append(f.acked, id)
}
