package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Under load, one part after another stops for longer than any lease that it
// holds, like a suspended process or machine: the store's server, each
// director, an agent, a director together with the server. The others consider
// it dead; it wakes up as if no time had passed. No acknowledged task may be
// lost, doubled or reordered.

// Leases: of a director, and of a slot, which is set so short that a stop can
// exceed it.
const (
	directorLease = 10 * time.Second
	shortTTL      = 2 * time.Second
)

// still is a part that can be stopped.
type still struct {
	name         string
	freeze, thaw func()
	length       time.Duration
}

func (r *role) still(length time.Duration) still {
	return still{r.name, func() { r.p.freeze() }, func() { r.p.thaw() }, length}
}

func TestStoppedForLongerThanLeases(t *testing.T) {
	c := newStill(t)
	url := c.addDirector("director", []string{"--data", c.data})
	for n := range crashAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), url, c.root)
	}
	c.c = c.client(url)
	c.stopEach(nil)
}

func TestStoppedForLongerThanLeasesPostgres(t *testing.T) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	stoppedOver(t, server.Database(t), server)
}

func TestStoppedForLongerThanLeasesRedis(t *testing.T) {
	server := testserver.NewRedis(t, testserver.RedisOptions{})
	stoppedOver(t, server.URL(), server)
}

func stoppedOver(t *testing.T, url string, server fireServer) {
	c := newStill(t)
	c.vars["SIGNALBOX_STORE"], c.vars["SIGNALBOX_SECRET_KEY"] = url, testKey
	var urls []string
	for _, name := range []string{"director-0", "director-1"} {
		urls = append(urls, c.addDirector(name, []string{"--data", filepath.Join(c.root, name), "--instance", name}))
	}
	for n := range crashAgents {
		c.addAgent(fmt.Sprintf("demo-%d", n), urls[n%2], c.root)
	}
	c.c = c.client(urls[0])
	c.stopEach(server)
}

func newStill(t *testing.T) *crash {
	c := &crash{box: newBox(t), rng: rand.New(rand.NewPCG(seedOf(t), 6))}
	c.patientLimits()
	c.silence = true
	c.vars["SIGNALBOX_EXECUTION_TTL"] = shortTTL.String()
	return c
}

// stopEach stops one part after another under load: in a quick run the
// shortest one, otherwise all of them ten times each, also two at once.
func (c *crash) stopEach(server fireServer) {
	c.j = c.journal(c.c)
	whole := soak.On()
	director := c.directors[len(c.directors)-1] // not the one that the test asks
	list := []still{c.agents[0].still(shortTTL + time.Second)}
	switch {
	case whole && server != nil:
		list = append(list, director.still(directorLease+time.Second), serverStill(server), still{
			director.name + " and the store's server",
			func() { director.p.freeze(); server.Freeze() }, func() { server.Thaw(); director.p.thaw() }, 2 * directorLease,
		})
	case server != nil:
		list = []still{serverStill(server)} // the others: TestIncidentDirectorStoppedForLong, and below
	case whole:
		list = append(list, director.still(directorLease+time.Second))
	default:
		list = append(list, director.still(shortTTL+time.Second))
	}
	if whole {
		list = slices.Repeat(list, 10)
		c.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	var over atomic.Bool
	var submitters sync.WaitGroup
	for n := range crashSubmitters {
		submitters.Go(func() { c.submitWhile(n, func(int) bool { return c.room(&over, 40) }) })
	}
	for _, part := range list {
		c.goesOn("before " + part.name + " stops")
		part.freeze()
		time.Sleep(part.length)
		part.thaw()
		c.goesOn("after " + part.name + " stood still")
		if c.t.Failed() {
			break
		}
	}
	over.Store(true)
	submitters.Wait()
	if c.t.Failed() {
		return
	}
	c.t.Logf("%d times something stood still", len(list))
	c.wantAllAcknowledged()
}

func serverStill(server fireServer) still {
	return still{"the store's server", server.Freeze, server.Thaw, directorLease + time.Second}
}

// goesOn expects that more tasks end.
func (c *crash) goesOn(when string) {
	c.t.Helper()
	next := ends(c.j.all()) + 20
	if !c.j.await(long, func(e []api.Event) bool { return ends(e) >= next }) {
		c.t.Errorf("%s nothing goes on: %d ends, waited for %d", when, ends(c.j.all()), next)
	}
}
