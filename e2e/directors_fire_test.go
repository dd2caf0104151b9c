package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Three directors over one server, ten agents, and a plain load balancer,
// while directors, agents and the server are killed at random.
const (
	fireTasks     = 20_000 // in make soak
	fireQuick     = 120    // in make test
	fireDirectors = 3
	fireAgents    = 10
)

// fireServer is a store's server that can be killed and restarted, and
// stopped for a while.
type fireServer interface {
	Kill() error
	Start() error
	Freeze()
	Thaw()
}

func TestThreeDirectorsUnderFirePostgres(t *testing.T) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	underFire(t, server.Database(t), server)
}

func TestThreeDirectorsUnderFireRedis(t *testing.T) {
	server := testserver.NewRedis(t, testserver.RedisOptions{})
	underFire(t, server.URL(), server)
}

func underFire(t *testing.T, url string, server fireServer) {
	tasks := soak.Pick(fireQuick, fireTasks)
	c := newFire(t, url)
	var submitters sync.WaitGroup
	for n := range crashSubmitters {
		submitters.Go(func() { c.submitMany(n, tasks/crashSubmitters) })
	}
	stop := make(chan struct{})
	restarts := make(chan int)
	go func() { restarts <- c.restart(server, stop) }()
	killed := make(chan int)
	go func() { killed <- c.wreck(tasks) }()
	submitters.Wait()
	n := <-killed
	close(stop)
	servers := <-restarts
	if t.Failed() {
		return
	}
	ended := map[string]api.Task{}
	for _, s := range c.tasks {
		ended[s.id] = c.end(c.c, s.id)
	}
	c.quiet()
	t.Logf("%d tasks, %d kills of directors and agents, %d of the server, %d events", len(c.tasks), n, servers, len(c.j.all()))
	if servers == 0 {
		t.Error("the server was never killed")
	}
	c.wantOneEndEach(tasks, ended)
	c.wantGrowingFences(c.wantNoOverlap(), ended)
	c.wantOrder()
	c.wantQuietLog()
}

// newFire is a crash test with several directors over one server.
func newFire(t *testing.T, url string) *crash {
	seed := seedOf(t)
	c := &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seed, 1))}
	c.patientLimits()
	c.vars["SIGNALBOX_STORE"] = url
	c.vars["SIGNALBOX_SECRET_KEY"] = testKey
	var addrs []string
	for n := range fireDirectors {
		name := fmt.Sprintf("director-%d", n)
		url := c.addDirector(name, []string{"--instance", name, "--data", filepath.Join(c.root, name)})
		addrs = append(addrs, strings.TrimPrefix(url, "http://"))
	}
	c.vars["SIGNALBOX_TOKEN"], c.vars["SIGNALBOX_PROOF"] = c.token(), "off" // the balancer is not a director and cannot prove itself
	front := newBalancer(t, addrs...)
	for n := range fireAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), front.url, c.root)
	}
	c.c = c.client(front.url)
	c.j = c.journal(c.c)
	return c
}

// testKey is the secret key of directors that share a store.
const testKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// restart kills the server each time some more events have happened, and
// restarts it. It returns the number of kills.
func (c *crash) restart(server fireServer, stop <-chan struct{}) int {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := 0; ; n++ {
		events := soak.Pick(60, 400)
		next := len(c.j.all()) + events + rng.IntN(events)
		c.j.await(20*time.Second, func(e []api.Event) bool { return len(e) >= next })
		select {
		case <-stop:
			return n
		default:
		}
		if err := server.Kill(); err != nil {
			c.t.Errorf("kill the server: %v", err)
			return n
		}
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond) // the downtime
		if err := server.Start(); err != nil {
			c.t.Errorf("start the server again: %v", err)
			return n
		}
	}
}
