package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Power cuts under load: every task that was acknowledged before or at the
// moment of a cut still exists when the power is back. The checks are those of
// the crash test; power_control_linux_test.go proves that such cuts do lose
// data that was not synced.

// powerCuts is the number of cuts in one test.
func powerCuts() int { return soak.Pick(2, 60) }

// power is a run: a crash test whose faults are power cuts.
type power struct {
	*crash
	disk *powerDisk
	// hosts are the roles that lose their power with the disk.
	hosts []*role
	// server is the store's server on the disk, nil for SQLite.
	server fireServer
	// looking is locked while the tasks are checked: then none are submitted,
	// because otherwise each check would have more to do than the last.
	looking sync.RWMutex
}

func TestNothingIsLostWhenThePowerIsCut(t *testing.T) {
	disk := newPowerDisk(t, 256)
	c := &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seedOf(t), 3))}
	c.data = filepath.Join(disk.dir, "data")
	c.patientLimits()
	url := c.addDirector("director", []string{"--data", c.data})
	for n := range crashAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), url, disk.dir)
	}
	c.c = c.client(url)
	c.j = c.journal(c.c)
	p := &power{crash: c, disk: disk, hosts: slices.Concat(c.directors, c.agents)}
	p.run()
}

func TestNothingIsLostWhenThePowerOfPostgresIsCut(t *testing.T) {
	disk := newPowerDisk(t, 512)
	server := testserver.NewPostgres(t, testserver.PostgresOptions{
		Folder: disk.dir, Settings: map[string]string{"max_wal_size": "64MB", "min_wal_size": "32MB", "shared_buffers": "16MB"},
	})
	p := newServerPower(t, disk, server.Database(t), server)
	p.run()
}

func TestNothingIsLostWhenThePowerOfRedisIsCut(t *testing.T) {
	disk := newPowerDisk(t, 256)
	server := testserver.NewRedis(t, testserver.RedisOptions{Folder: disk.dir})
	p := newServerPower(t, disk, server.URL(), server)
	p.run()
}

// newServerPower is a run with two directors over a server on the disk; one of
// them loses its power with it.
func newServerPower(t *testing.T, disk *powerDisk, url string, server fireServer) *power {
	c := &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seedOf(t), 3))}
	c.patientLimits()
	c.vars["SIGNALBOX_STORE"] = url
	c.vars["SIGNALBOX_SECRET_KEY"] = testKey
	var urls []string
	for _, name := range []string{"director-0", "director-1"} {
		urls = append(urls, c.addDirector(name, []string{"--data", filepath.Join(c.root, name), "--instance", name}))
	}
	for n := range crashAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), urls[n%2], c.root)
	}
	c.c = c.client(urls[0])
	c.j = c.journal(c.c)
	return &power{crash: c, disk: disk, hosts: c.directors[1:], server: server}
}

// run cuts the power repeatedly under load, and checks all acknowledged
// tasks.
func (p *power) run() {
	p.t.Helper()
	p.disk.settle()
	var over atomic.Bool
	var submitters sync.WaitGroup
	for n := range crashSubmitters {
		submitters.Go(func() { p.submitWhile(n, func(int) bool { return p.load(&over) }) })
	}
	checked, cuts := 0, powerCuts()
	began := time.Now()
	for n := range cuts {
		p.cutUnderLoad(n)
		if checked = p.wantAllSince(n, checked); p.t.Failed() {
			break
		}
	}
	over.Store(true)
	submitters.Wait()
	if p.t.Failed() {
		return
	}
	if len(p.tasks) < 20*cuts {
		p.t.Errorf("%d tasks in %d cuts: so few show little", len(p.tasks), cuts)
	}
	p.t.Logf("%d power cuts in %s", cuts, time.Since(began).Round(time.Second))
	p.wantAllAcknowledged()
}

// load waits until it is time, and reports whether to submit another task.
func (p *power) load(over *atomic.Bool) bool {
	p.looking.RLock()
	defer p.looking.RUnlock()
	return p.room(over, 40)
}

// cutUnderLoad cuts the power once, some events after the last time, and
// restores it.
func (p *power) cutUnderLoad(n int) {
	next := len(p.j.all()) + 60 + p.rng.IntN(120)
	if !p.j.await(long, func(e []api.Event) bool { return len(e) >= next }) {
		p.t.Fatalf("cut %d: nothing goes on: %d events, waited for %d", n, len(p.j.all()), next)
	}
	p.standStill()
	p.disk.cut()
	for _, r := range p.hosts {
		r.kill()
	}
	if p.server != nil {
		if err := p.server.Kill(); err != nil {
			p.t.Fatal(err)
		}
	}
	p.disk.back()
	if p.server != nil {
		if err := p.server.Start(); err != nil {
			p.t.Fatalf("cut %d: the server does not start again: %v", n, err)
		}
	}
	for _, r := range p.hosts {
		r.start()
	}
}

// standStill stops everything that loses its power with the disk, wherever it
// is, even in a commit. Nothing may be acknowledged after the cut, because real
// machines cannot do that. But for one in twenty syncs that are in flight at
// that moment, the kernel's shutdown reports success although the data is lost.
func (p *power) standStill() {
	p.t.Helper()
	for _, r := range p.hosts {
		r.p.freeze()
	}
	if p.server != nil {
		p.server.Freeze() // processes with one thread each: none returns from the kernel
	}
	for _, r := range p.hosts {
		p.until(r.name+" stands still", func() bool { return standsStill(r.p.pid()) })
	}
}

// standsStill reports whether every thread of a process is stopped, or will be
// when it returns from the disk.
func standsStill(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	for _, path := range stats {
		text, err := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		if err == nil && !strings.ContainsAny(rest[:1], "TtDZX") {
			return false
		}
	}
	return len(stats) > 0
}

// wantAllSince: all tasks acknowledged since the last cut exist, and all that
// the stream reported as ended have ended. It returns the number of tasks.
func (p *power) wantAllSince(n, checked int) int {
	p.t.Helper()
	p.looking.Lock()
	defer p.looking.Unlock()
	p.mu.Lock()
	tasks := slices.Clone(p.tasks)
	p.mu.Unlock()
	ended := map[string]string{}
	for _, e := range p.j.all() {
		if signalbox.State(e.State).Terminal() {
			ended[e.QueueID] = e.State
		}
	}
	for _, s := range tasks[checked:] {
		var task api.Task
		var err error
		testkit.Wait(p.t, "the director is there", func() bool {
			task, err = p.c.Task(p.ctx(), s.id)
			return !awayFor(err)
		})
		if err != nil {
			p.t.Errorf("cut %d: %s was acknowledged: %v", n, s.id, err)
		} else if want := cmp.Or(ended[s.id], task.State); task.State != want {
			p.t.Errorf("cut %d: the stream said that %s ended as %s, and it is %s", n, s.id, want, task.State)
		}
	}
	return len(tasks)
}
