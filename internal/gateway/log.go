package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// LevelVerbose is the level VRB of the seed (tool-queue-manager, step 6), for
// what happens to each call: between debug and info.
const LevelVerbose = slog.Level(-2)

// Mark stands for a session, or for its SessionKey, where people look: whoever
// knows an MCP session's id could speak for it.
func Mark(session string) string {
	key := session
	if !strings.HasPrefix(key, keyPrefix) || len(key) != keyLength {
		key = SessionKey(session)
	}
	if key == "" {
		return ""
	}
	return key[len(keyPrefix):][:8]
}

// SessionKey stands for a session where programs must know it again: in the
// store, and among several directors.
func SessionKey(session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(session))
	return keyPrefix + hex.EncodeToString(sum[:])
}

const (
	keyPrefix = "sha256:"
	keyLength = len(keyPrefix) + 2*sha256.Size
)

// Hooks writes the seed's log lines about waiting, and calls those of others
// too. The line queued is written when the wait begins, so that one who waits
// for ever is seen; a call that does not wait has none.
func Hooks(log *slog.Logger, others ...toolqueue.Hooks) toolqueue.Hooks {
	return toolqueue.Hooks{
		Depth: func(queue string, depth int) {
			for _, o := range others {
				if o.Depth != nil {
					o.Depth(queue, depth)
				}
			}
		},
		Queued: func(queue string, who toolqueue.Who, depth, concurrent int) {
			if log.Enabled(context.Background(), LevelVerbose) {
				write(log, LevelVerbose, "queued", who, "reason", "capacity", "queue", queue, "queued_at_depth", depth, "max_concurrent", concurrent)
			}
			for _, o := range others {
				if o.Queued != nil {
					o.Queued(queue, who, depth, concurrent)
				}
			}
		},
		Waited: func(queue string, who toolqueue.Who, wait time.Duration) {
			if log.Enabled(context.Background(), LevelVerbose) {
				write(log, LevelVerbose, "waited", who, "queue", queue, "wait_ms", wait.Milliseconds())
			}
			for _, o := range others {
				if o.Waited != nil {
					o.Waited(queue, who, wait)
				}
			}
		},
		Refused: func(queue string, who toolqueue.Who, r toolqueue.Reason, wait time.Duration) {
			level := slog.LevelWarn
			if r == toolqueue.ReasonCancelled {
				level = LevelVerbose
			}
			if log.Enabled(context.Background(), level) {
				write(log, level, "refused", who, "reason", string(r), "queue", queue, "wait_ms", wait.Milliseconds())
			}
			for _, o := range others {
				if o.Refused != nil {
					o.Refused(queue, who, r, wait)
				}
			}
		},
	}
}

func write(log *slog.Logger, level slog.Level, msg string, who toolqueue.Who, args ...any) {
	args = append(args, "tool", who.Tool)
	if who.Session != "" {
		args = append(args, "session", Mark(who.Session))
	}
	if who.Agent != "" {
		args = append(args, "agent", who.Agent)
	}
	log.Log(context.Background(), level, msg, args...)
}

// logStarted and logFinished are the seed's lines of every call.
func (g *Gateway) logStarted(u *underway) {
	if g.log.Enabled(context.Background(), LevelVerbose) {
		g.logCall(u, "started")
	}
}

// The time of a call is that since it was started; the line waited has the wait.
func (g *Gateway) logFinished(u *underway, outcome string, took time.Duration, err error) {
	if !g.log.Enabled(context.Background(), LevelVerbose) {
		return
	}
	args := []any{"outcome", outcome, "duration_ms", took.Milliseconds()}
	if err != nil {
		args = append(args, "error", err.Error())
	}
	g.logCall(u, "finished", args...)
}

func (g *Gateway) logCall(u *underway, msg string, args ...any) {
	args = append(args, "server", u.entry.tool.Server)
	if e := u.call.Caller.Execution; e != "" {
		args = append(args, "queue_id", e)
	}
	caller := u.call.Caller
	write(g.log, LevelVerbose, msg, toolqueue.Who{Session: caller.Session, Agent: caller.Agent, Tool: u.entry.tool.Name}, args...)
}

// logPanic writes what no caller is told.
func (g *Gateway) logPanic(u *underway, p any) {
	g.log.Error("a provider panicked", "server", u.entry.tool.Server, "tool", u.entry.tool.Name, "panic", p, "stack", string(debug.Stack()))
}

// keepTelling is the longest silence of a call that waits. Clients give up
// between 60 and 300 s without a word, some sooner.
const keepTelling = 5 * time.Second

// news tells a caller how its call fares: its place in line, then what the
// upstream says. A nil news tells nothing.
//
// A caller that is slow to take in what it is told must not hold up its call:
// the slot is used at once, whether or not the last place in line has been
// told. Only the end of the call waits for it, when the slot is free again.
type news struct {
	mu      sync.Mutex // one word at a time
	f       func(Progress)
	over    bool          // guarded by mu
	waiting atomic.Bool   // else its place in line is of no interest any more
	stop    chan struct{} // ends the goroutine that follows the place
	done    chan struct{} // nil: there is none
}

func newNews(f func(Progress)) *news {
	if f == nil {
		return nil
	}
	return &news{f: f}
}

// follow tells the place in line until waitOver: at once, when it changes, and
// every few seconds.
func (n *news) follow(w toolqueue.Waiting) {
	if n == nil {
		return
	}
	n.waiting.Store(true)
	n.stop, n.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(n.done)
		n.places(w)
	}()
}

func (n *news) places(w toolqueue.Waiting) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	told, last := time.Time{}, 0
	for {
		select {
		case <-n.stop:
			return
		case <-timer.C:
		}
		place := w.Position()
		if place == 0 {
			return
		}
		if place != last || time.Since(told) >= keepTelling {
			told, last = time.Now(), place
			n.place(place)
		}
		timer.Reset(lookAgain(place))
	}
}

// lookAgain is how soon a place is looked up again. A look walks the line up to
// there with the queue locked, so that those far back look less often.
func lookAgain(place int) time.Duration {
	switch {
	case place <= 100:
		return 100 * time.Millisecond
	case place <= 1000:
		return time.Second
	}
	return keepTelling
}

func (n *news) place(place int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting.Load() {
		n.f(Progress{Message: fmt.Sprintf("queued, position %d", place), Position: place})
	}
}

// waitOver ends the news of the place.
func (n *news) waitOver() {
	if n != nil && n.stop != nil {
		n.waiting.Store(false)
		close(n.stop)
	}
}

// upstream hands on what the upstream says, until the call is over.
func (n *news) upstream(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		p.Position = 0
		n.f(p)
	}
}

// end returns when the caller will hear no more.
func (n *news) end() {
	if n == nil {
		return
	}
	if n.done != nil {
		<-n.done
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}
