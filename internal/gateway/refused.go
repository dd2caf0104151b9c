package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Refused is the error of a call that the upstream rejected with 429 or 503 without processing it,
// so that it is safe to retry. It closes the tool's queue.
type Refused struct {
	By     string        // the upstream, as shown to people
	Status int           // HTTP status
	After  time.Duration // Retry-After of the upstream; 0: not given
}

func (r *Refused) Error() string {
	return fmt.Sprintf("%s answered %d %s", r.By, r.Status, http.StatusText(r.Status))
}

const (
	// maxRuns is how often a call is tried if the upstream refuses it each time.
	maxRuns = 10
	// firstGuess is how long a queue is closed if the upstream gives no time. The guess doubles,
	// up to maxGuess, if a call is refused within guessGrace of the queue's opening.
	firstGuess = time.Second
	maxGuess   = time.Minute
	guessGrace = 10 * time.Second
)

// errAgain means that the upstream refused a call and that it will be
// retried.
var errAgain = errors.New("the call was refused and is made again")

// refused closes the queue of a refused call. It returns errAgain if the call may wait until the
// queue opens.
func (g *Gateway) refused(u *inFlightCall, r *Refused) error {
	queue, now := u.entry.tool.Queue, time.Now()
	until, why := now.Add(min(r.After, toolqueue.MaxClosed)), r.Error()
	if r.After == 0 {
		until = g.guesses.next(guessKey{queue, u.key}, now)
		why += ", not until when"
	}
	if queue != "" {
		if err := g.queues.CloseUntil(queue, u.key, until, why); err != nil {
			return err // there is no such queue: the call did not wait in it either
		}
		g.log.Warn("an upstream refuses calls: the tool queue is closed", "tool", u.entry.tool.Name, "queue", queue, "until", until.UTC().Format(time.RFC3339), "why", why)
		g.QueuesChanged()
		if u.runs < maxRuns && g.mayWait(u, until) {
			return errAgain
		}
	}
	at := until.UTC().Format(time.TimeOnly + " UTC")
	e := signalbox.Errorf(signalbox.CodeToolQueueOut, "The tool %q did not run: %s. Its tool queue %q is closed until %s; call it again then.", u.entry.tool.Name, why, queue, at)
	if queue == "" {
		e.Message = fmt.Sprintf("The tool %q did not run: %s. Call it again at %s.", u.entry.tool.Name, why, at)
	}
	e.RetryAfter = time.Until(until)
	return e
}

// mayWait reports whether a call may wait until then.
func (g *Gateway) mayWait(u *inFlightCall, until time.Time) bool {
	if ends, ok := u.ctx.Deadline(); ok && ends.Before(until) {
		return false
	}
	bound, has := g.waitLeft(u)
	return !has || time.Until(until) < bound
}

// waitLeft returns how much longer a call may wait, if that is bounded: by its queue, else by the
// tool's timeout, unless the call has QueueTimeoutOnly.
func (g *Gateway) waitLeft(u *inFlightCall) (left time.Duration, bounded bool) {
	bound := u.entry.waitBound
	if u.call.QueueTimeoutOnly {
		bound = 0
	}
	if u.runs > 0 { // on the first run, the queue itself enforces its bound
		if s, ok := g.queues.Status(u.entry.tool.Queue, 0); ok && s.MaxWait > 0 {
			bound = s.MaxWait
		}
	}
	return bound - u.waited, bound > 0
}

// guesses hold how long queues were closed whose upstream gave no time.
type guesses struct {
	mu sync.Mutex
	of map[guessKey]guess
}

type guessKey struct{ queue, key string }

type guess struct {
	closed time.Duration
	until  time.Time
}

// next returns until when to close a queue. While a queue is closed by a guess, that
// guess stays.
func (g *guesses) next(key guessKey, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.of, func(_ guessKey, old guess) bool { return now.After(old.until.Add(old.closed + guessGrace)) })
	last := g.of[key]
	if now.Before(last.until) {
		return last.until
	}
	closed := min(max(firstGuess, 2*last.closed), maxGuess)
	if g.of == nil {
		g.of = map[guessKey]guess{}
	}
	g.of[key] = guess{closed, now.Add(closed)}
	return now.Add(closed)
}
