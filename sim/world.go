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

// Options selects a history.
type Options struct {
	Seed uint64
	// Store is a new, empty store. One with goroutines of its own is opened outside of the
	// bubble and wrapped by Outside.
	Store store.Store
	// Keep is how many of the last steps are reported; 0: 60.
	Keep int
}

// Result is the outcome of a history.
type Result struct {
	Hash  string // of all steps, in order
	Steps int
	Tasks int
	// Directors is one or two.
	Directors int
	Faults    map[string]int // injected, by name
	Wrong     []string       // violated invariants; empty: success
	Last      []string       // the last steps
}

// world is one history in progress.
type world struct {
	rng       *rand.Rand
	scheduler *scheduler
	begun     time.Time
	store     store.Store // for checks
	town      *peerstest.World
	skew      time.Duration // of the directors' wall clock
	ahead     time.Duration // maximum skew so far

	directors     []*director
	agents        []*agent
	logins        []*login
	delayed       []delayedRequest  // requests that arrive late
	holder        map[string]int    // agent to director
	paused        *director         // the paused director
	pausedUntil   time.Time         // when it resumes
	pausedTask    string            // the task it was about to act on
	pauseRate     int               // one in this many changes pauses it
	moveRate      atomic.Bool       // agents move between directors
	faultsEnabled bool              // faults happen
	tasks         []string          // in the order of their acknowledgement
	keys          map[string]string // idempotency key → acknowledged task
	unanswered    []submit          // submissions whose answer was lost: to retry
	users         int
	faults        map[string]int
	pauses        int
	starved       map[string]time.Duration // tasks beside a free slot
	backstopUntil time.Time                // until then they may wait for the backstop

	ended atomic.Bool     // nothing counts any more
	ctx   context.Context // ends with the history
	hash  hash.Hash
	steps int
	last  []string
	keep  int
	book  ledger
	wrong []string
}

type delayedRequest struct {
	to   *agent
	q    *request
	sent time.Time
}

// defaultKeep is Options.Keep if it is 0.
const defaultKeep = 60

// note records a step, which becomes part of the hash.
func (w *world) note(parts ...string) {
	w.steps++
	line := fmt.Sprintf("%d %s %s", w.steps, time.Since(w.begun), strings.Join(parts, " "))
	_, _ = io.WriteString(w.hash, line) // a hash never fails
	if len(w.last) >= w.keep {
		w.last = append(w.last[:0], w.last[1:]...)
	}
	w.last = append(w.last, line)
}

// fail records a violated invariant.
func (w *world) fail(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

func (w *world) isOver() bool { return w.ended.Load() }

func (w *world) fault(name string) { w.faults[name]++ }

// now is the agents' time.
func (w *world) now() time.Time { return time.Now().UTC() }

// wall is the directors' time. It can jump.
func (w *world) wall() time.Time { return time.Now().Add(w.skew) }

// sleep waits, at most until the history has ended.
func (w *world) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// oneIn reports true once in n times.
func (w *world) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// between is a random duration in [a, b).
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

// runtime is the duration of a run.
func (w *world) runtime() time.Duration {
	switch {
	case !w.faultsEnabled:
		return w.between(10*time.Millisecond, time.Second)
	case w.oneIn(6):
		return w.between(10*time.Second, 70*time.Second)
	case w.oneIn(3):
		return w.between(time.Millisecond, 50*time.Millisecond)
	}
	return w.between(50*time.Millisecond, 8*time.Second)
}

// chooseFault chooses the fault of a request to an agent. Nothing is delivered twice or late to an agent that
// cannot tell duplicates: for it that would be a new request.
func (w *world) chooseFault(a *agent) networkFault {
	if !w.faultsEnabled || !w.oneIn(7) {
		return arrives
	}
	f := networkFault(1 + w.rng.IntN(int(faultCount)-1))
	if a.plain && (f == late || f == twice) {
		f = unheard
	}
	w.fault(strings.TrimSpace(faultNames[f]))
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

// post keeps a request for later.
func (w *world) post(a *agent, q *request) {
	again := *q
	again.wait = 0
	w.delayed = append(w.delayed, delayedRequest{a, &again, w.now()})
}

// maxDelay is how late a request may arrive so that a sender that asks again after a while, like the
// dispatcher, still learns of it.
const maxDelay = 900 * time.Millisecond

// deliver delivers one of the delayed requests.
func (w *world) deliver() {
	i := w.rng.IntN(len(w.delayed))
	l := w.delayed[i]
	w.delayed = append(w.delayed[:i], w.delayed[i+1:]...)
	if l.to.down || l.to.silent {
		return
	}
	w.note("late", l.q.method, l.to.name+l.q.path)
	l.q.late = l.q.late || w.now().Sub(l.sent) > maxDelay
	l.to.handle(l.q)
}

// Play plays the history of a seed to its end. It must be called within a synctest bubble.
func Play(o Options) Result {
	w := &world{
		rng: rand.New(rand.NewPCG(o.Seed, 0x51b0)), scheduler: newScheduler(), begun: time.Now(), hash: sha256.New(), faultsEnabled: true,
		store: o.Store, keep: cmp.Or(o.Keep, defaultKeep),
		holder: map[string]int{}, keys: map[string]string{}, faults: map[string]int{},
	}
	var end func()
	w.ctx, end = context.WithCancel(context.Background())
	w.book.init()
	w.play()
	w.ended.Store(true)
	end()
	for _, d := range w.directors {
		w.kill(d)
	}
	w.drainDead()
	return Result{
		Hash: hex.EncodeToString(w.hash.Sum(nil)[:16]), Steps: w.steps, Tasks: len(w.tasks), Directors: len(w.directors), Faults: w.faults, Wrong: w.wrong, Last: w.last,
	}
}

// play plays the faults, and then the fault-free time in which everything must end.
func (w *world) play() {
	w.setUp()
	pace := []int{3, 5, 12, 30}[w.rng.IntN(4)] // one in this many steps is a random event
	steps := 60 + w.rng.IntN(60*pace)
	for i := 0; i < steps && len(w.wrong) == 0; i++ {
		w.resumeIfDue()
		if w.oneIn(pace) || (w.idle() && w.oneIn(4)) {
			w.randomEvent()
		} else {
			w.step()
		}
	}
	w.settle()
}

// drainDead lets the goroutines of dead directors end.
func (w *world) drainDead() {
	for {
		synctest.Wait()
		if !w.scheduler.freeDead() {
			return
		}
	}
}

// idle reports whether no actor waits, after all have arrived.
func (w *world) idle() bool {
	w.drainDead()
	return w.scheduler.runnable() == 0
}

// step runs one actor, or advances time if there is none.
func (w *world) step() {
	if w.idle() {
		w.advanceIdle()
		return
	}
	s := w.scheduler.next(w.rng.IntN)
	w.note(s.name, s.what)
	close(s.resume)
	w.drainDead()
	w.check()
	if w.oneIn(3) {
		time.Sleep(w.between(time.Microsecond, 20*time.Millisecond))
		synctest.Wait() // the actors it woke have arrived
	}
}

// advance advances time until an actor arrives or the history ends.
func (w *world) advance(most time.Duration) {
	synctest.Wait() // or a stale signal could remain
	select {
	case <-w.scheduler.arrived: // possibly a stale signal
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

// task is the stored row of a task.
func (w *world) task(id string) (signalbox.Task, error) {
	return w.store.Task(context.Background(), id)
}
