package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Options says which history is played.
type Options struct {
	Seed uint64
	// Store is a new, empty store. One that has goroutines of its own is opened
	// outside of the bubble, and goes through Outside.
	Store store.Store
	// Keep is how many of the last steps are kept for the report; 0: 60.
	Keep int
}

// Result is what became of a history.
type Result struct {
	Hash  string // of all that happened, in order
	Steps int
	Tasks int
	// Directors is how many there were: one, or two.
	Directors int
	Faults    map[string]int // what was done to it, by name
	Wrong     []string       // invariants that did not hold; empty: all is well
	Last      []string       // the last steps
}

// world is one history under way.
type world struct {
	rng       *rand.Rand
	scheduler *scheduler
	begun     time.Time
	store     store.Store // for looking at it from outside
	town      *peerstest.World
	skew      time.Duration // of the directors' wall clock
	ahead     time.Duration // the most that it ever was

	directors []*director
	agents    []*agent
	mail      []letter          // requests that come late
	holder    map[string]int    // which director has an agent
	still     *director         // stands still
	until     time.Time         // for so long
	about     string            // the task that it was about to say something of
	halts     int               // one in so many changes finds it still
	handing   atomic.Bool       // agents go over
	faulty    bool              // faults happen
	tasks     []string          // acknowledged, in the order of their acknowledgement
	keys      map[string]string // idempotency key → acknowledged task
	open      []submit          // whose answer was lost: to be sent again
	users     int
	faults    map[string]int
	pauses    int
	waited    map[string]time.Duration // tasks, beside a free slot
	excused   time.Time                // until then, if anybody does

	over  atomic.Bool     // nothing counts any more
	ctx   context.Context // until then
	hash  hash.Hash
	steps int
	last  []string
	keep  int
	book  ledger
	wrong []string
}

// letter is a request that waits to be delivered.
type letter struct {
	to   *agent
	q    *request
	sent time.Time
}

// kept is Options.Keep where it is 0.
const kept = 60

// note writes down a step: it becomes a part of the hash.
func (w *world) note(parts ...string) {
	w.steps++
	line := fmt.Sprintf("%d %s %s", w.steps, time.Since(w.begun), strings.Join(parts, " "))
	_, _ = io.WriteString(w.hash, line) // a hash takes everything
	if len(w.last) >= w.keep {
		w.last = append(w.last[:0], w.last[1:]...)
	}
	w.last = append(w.last, line)
}

// fail notes that something that must hold does not.
func (w *world) fail(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

func (w *world) isOver() bool { return w.over.Load() }

func (w *world) fault(name string) { w.faults[name]++ }

// now is the time that agents go by.
func (w *world) now() time.Time { return time.Now().UTC() }

// wall is the time that directors go by. It can jump.
func (w *world) wall() time.Time { return time.Now().Add(w.skew) }

// sleep waits, at most until nothing counts any more.
func (w *world) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// one reports true once in n times.
func (w *world) one(n int) bool { return w.rng.IntN(n) == 0 }

// between is a length of time, from a to less than b.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

// runtime is how long a run will take.
func (w *world) runtime() time.Duration {
	switch {
	case !w.faulty:
		return w.between(10*time.Millisecond, time.Second)
	case w.one(6):
		return w.between(10*time.Second, 70*time.Second)
	case w.one(3):
		return w.between(time.Millisecond, 50*time.Millisecond)
	}
	return w.between(50*time.Millisecond, 8*time.Second)
}

// fateOf decides about a request to an agent. A network delivers nothing twice
// or late to an agent that cannot tell: to those it would be another request.
func (w *world) fateOf(a *agent) fate {
	if !w.faulty || !w.one(7) {
		return arrives
	}
	f := fate(1 + w.rng.IntN(int(fateCount)-1))
	if a.plain && (f == late || f == twice) {
		f = unheard
	}
	w.fault(strings.TrimSpace(fateNames[f]))
	return f
}

func (w *world) agentAt(host string) *agent {
	for _, a := range w.agents {
		if strings.HasPrefix(host, "127.0.0.1:") && strings.TrimPrefix(a.url(), "http://") == host {
			return a
		}
	}
	panic("a request to " + host + ", where nobody is")
}

func (a *agent) url() string {
	u := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", 9000+int(a.name[0]))}
	return u.String()
}

// post leaves a request for later.
func (w *world) post(a *agent, q *request) {
	again := *q
	again.wait = 0
	w.mail = append(w.mail, letter{a, &again, w.now()})
}

// inTime is how late a request may come so that whoever asks about it, and asks
// again after a while as the dispatcher does, hears of it.
const inTime = 900 * time.Millisecond

// deliver brings one of the late requests.
func (w *world) deliver() {
	i := w.rng.IntN(len(w.mail))
	l := w.mail[i]
	w.mail = append(w.mail[:i], w.mail[i+1:]...)
	if l.to.down || l.to.silent {
		return
	}
	w.note("late", l.q.method, l.to.name+l.q.path)
	l.q.late = l.q.late || w.now().Sub(l.sent) > inTime
	l.to.handle(l.q)
}

// Play plays the history of a seed to its end. It must be called within a bubble
// of synctest: the time of the history is not real.
func Play(o Options) Result {
	w := &world{
		rng: rand.New(rand.NewPCG(o.Seed, 0x51b0)), scheduler: newScheduler(), begun: time.Now(), hash: sha256.New(), faulty: true,
		store: o.Store, keep: cmp.Or(o.Keep, kept),
		holder: map[string]int{}, keys: map[string]string{}, faults: map[string]int{},
	}
	var end func()
	w.ctx, end = context.WithCancel(context.Background())
	w.book.init()
	w.play()
	w.over.Store(true)
	end()
	for _, d := range w.directors {
		w.kill(d)
	}
	w.freeAllDead()
	return Result{
		Hash: hex.EncodeToString(w.hash.Sum(nil)[:16]), Steps: w.steps, Tasks: len(w.tasks), Directors: len(w.directors), Faults: w.faults, Wrong: w.wrong, Last: w.last,
	}
}

// play plays the faults, and then the time without any, in which everything must
// come to its end.
func (w *world) play() {
	w.found()
	pace := []int{3, 5, 12, 30}[w.rng.IntN(4)] // one in so many steps is something that happens to it
	steps := 60 + w.rng.IntN(60*pace)
	for i := 0; i < steps && len(w.wrong) == 0; i++ {
		w.goOnInTime()
		if w.one(pace) || (w.idle() && w.one(4)) {
			w.happen()
		} else {
			w.step()
		}
	}
	w.settle()
}

// freeAllDead lets everything end that belongs to the dead.
func (w *world) freeAllDead() {
	for {
		synctest.Wait()
		if !w.scheduler.freeDead() {
			return
		}
	}
}

// idle reports whether nobody stands at a turn, after all have come to one.
func (w *world) idle() bool {
	w.freeAllDead()
	return w.scheduler.able() == 0
}

// step lets one actor go on, or, where none stands at its turn, time.
func (w *world) step() {
	if w.idle() {
		w.rest()
		return
	}
	s := w.scheduler.next(w.rng.IntN)
	w.note(s.name, s.what)
	close(s.goOn)
	w.freeAllDead()
	w.check()
	if w.one(3) {
		time.Sleep(w.between(time.Microsecond, 20*time.Millisecond))
		synctest.Wait() // whoever it woke has come to a turn
	}
}

// pass lets time go on until an actor comes to its turn, or it is over.
func (w *world) pass(most time.Duration) {
	synctest.Wait() // or whoever is about to come would be an old sign, or not
	select {
	case <-w.scheduler.arrived: // an old sign, perhaps
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.scheduler.arrived:
	case <-timer.C:
	}
	synctest.Wait()
}

// task is the row of a task, as it is stored.
func (w *world) task(id string) (signalbox.Task, error) {
	return w.store.Task(context.Background(), id)
}
