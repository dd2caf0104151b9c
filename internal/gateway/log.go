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

// LevelVerbose is the level VRB of the seed (tool-queue-manager, step 6), for the events of
// each call: between debug and info.
const LevelVerbose = slog.Level(-2)

// SessionLabel is a short display label of a session or of its SessionKey. The ID itself is never
// shown: whoever knows the ID of an MCP session can use the session.
func SessionLabel(session string) string {
	key := session
	if !strings.HasPrefix(key, keyPrefix) || len(key) != keyLength {
		key = SessionKey(session)
	}
	if key == "" {
		return ""
	}
	return key[len(keyPrefix):][:8]
}

// SessionKey is the hash that identifies a session in the store and among several directors.
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

// Hooks writes the seed's log lines about waiting, and then calls the other hooks. The line
// queued is written when the wait begins, so that a stuck call is visible. A call that does
// not wait has no such line.
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
		args = append(args, "session", SessionLabel(who.Session))
	}
	if who.Agent != "" {
		args = append(args, "agent", who.Agent)
	}
	log.Log(context.Background(), level, msg, args...)
}

// logStarted and logFinished write the seed's log lines of every call.
func (g *Gateway) logStarted(u *inFlightCall) {
	if g.log.Enabled(context.Background(), LevelVerbose) {
		g.logCall(u, "started")
	}
}

// logFinished logs the time since the start; the line waited has the time of
// the wait.
func (g *Gateway) logFinished(u *inFlightCall, outcome string, took time.Duration, err error) {
	if !g.log.Enabled(context.Background(), LevelVerbose) {
		return
	}
	args := []any{"outcome", outcome, "duration_ms", took.Milliseconds()}
	if err != nil {
		args = append(args, "error", err.Error())
	}
	g.logCall(u, "finished", args...)
}

func (g *Gateway) logCall(u *inFlightCall, msg string, args ...any) {
	args = append(args, "server", u.entry.tool.Server)
	if e := u.call.Caller.Execution; e != "" {
		args = append(args, "queue_id", e)
	}
	caller := u.call.Caller
	write(g.log, LevelVerbose, msg, toolqueue.Who{Session: caller.Session, Agent: caller.Agent, Tool: u.entry.tool.Name}, args...)
}

// logPanic logs the details that callers must not see.
func (g *Gateway) logPanic(u *inFlightCall, p any) {
	g.log.Error("a provider panicked", "server", u.entry.tool.Server, "tool", u.entry.tool.Name, "panic", p, "stack", string(debug.Stack()))
}

// progressInterval is the longest time without a progress report while a call waits. Clients
// time out after 60 to 300 s of silence, some sooner.
const progressInterval = 5 * time.Second

// progressReporter reports the progress of a call: its position in the queue, then what the
// upstream reports. A nil reporter does nothing.
//
// A slow listener must not delay its call: the call uses its slot at once, even if the last
// position is not delivered yet. Only the end of the call waits for the listener, after the
// slot is released.
type progressReporter struct {
	mu      sync.Mutex // one report at a time
	f       func(Progress)
	closed  bool          // guarded by mu
	waiting atomic.Bool   // if false, positions are no longer reported
	stop    chan struct{} // ends the goroutine of follow; nil: it is not running
	done    chan struct{} // closed by the newest such goroutine; nil: none was started
}

func newProgressReporter(f func(Progress)) *progressReporter {
	if f == nil {
		return nil
	}
	return &progressReporter{f: f}
}

// follow reports the position until waitOver: at once, on change, and every few seconds.
func (n *progressReporter) follow(w toolqueue.Waiting, queue string) {
	if n == nil {
		return
	}
	n.waiting.Store(true)
	before, stop, done := n.done, make(chan struct{}), make(chan struct{})
	n.stop, n.done = stop, done
	go func() {
		defer close(done)
		if before != nil { // of an earlier wait of the call
			<-before
		}
		n.reportPositions(w, queue, stop)
	}()
}

func (n *progressReporter) reportPositions(w toolqueue.Waiting, queue string, stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var told time.Time
	var last Progress
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		place := w.Position()
		if place == 0 {
			return
		}
		p := Progress{Message: fmt.Sprintf("queued, position %d", place), Position: place}
		if held := w.Held(); !held.Until.IsZero() {
			p.StartsAt = held.Until
			p.Message += fmt.Sprintf(" in tool queue %s, %s", queue, held)
		}
		if p.Message != last.Message || time.Since(told) >= progressInterval {
			told, last = time.Now(), p
			n.reportPosition(p)
		}
		timer.Reset(nextPositionCheck(place))
	}
}

// nextPositionCheck returns the delay until the next check of a position. A check walks the
// queue up to the position under its lock, so distant positions are checked less often.
func nextPositionCheck(place int) time.Duration {
	switch {
	case place <= 100:
		return 100 * time.Millisecond
	case place <= 1000:
		return time.Second
	}
	return progressInterval
}

func (n *progressReporter) reportPosition(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting.Load() {
		n.f(p)
	}
}

// waitOver ends the reports of the position.
func (n *progressReporter) waitOver() {
	if n != nil && n.stop != nil {
		n.waiting.Store(false)
		close(n.stop)
		n.stop = nil
	}
}

// forward forwards progress of the upstream until the call ends.
func (n *progressReporter) forward(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		p.Position = 0
		n.f(p)
	}
}

// close returns once no more progress will be reported.
func (n *progressReporter) close() {
	if n == nil {
		return
	}
	if n.done != nil {
		<-n.done
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}
