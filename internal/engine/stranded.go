package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// strandedInterval is the pause between scans of a queue, unless a session task enters it.
const strandedInterval = 30 * time.Second

// strandedScan is a scan of the queue of a disconnected agent. It reads a page at a time:
// the queue may be long, and ResolveStranded is called every second.
type strandedScan struct {
	changed atomic.Bool // a session task has entered the queue since the scan started

	mu     sync.Mutex
	after  store.Cursor // end of the last page; zero: at the start
	nextAt time.Time    // start of the next scan, unless changed
}

// noteStranded starts the next scan early if a session task entered the queue.
func (e *Engine) noteStranded(a *Applied) {
	t := &a.Task
	if t.State != signalbox.Pending || (t.SessionMode == "" && !a.Partial) {
		return
	}
	if s, ok := e.stranded.Load(t.Queue); ok {
		s.(*strandedScan).changed.Store(true)
	}
}

// ResolveStranded handles tasks that wait for an agent because it holds their session, when
// the agent has been gone for the session grace: they fail with a message that says what to
// do, or move to the work queue if submitted with session: prefer. Tasks that named the
// agent keep waiting. A call handles at most batchSize tasks; it should be made every
// second.
func (e *Engine) ResolveStranded(ctx context.Context, agent string, gone time.Duration) error {
	queue := signalbox.AgentQueue(agent)
	known, _ := e.stranded.LoadOrStore(queue, &strandedScan{})
	s := known.(*strandedScan)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed.Load() && e.Now().Before(s.nextAt) {
		return nil
	}
	if s.after == (store.Cursor{}) {
		s.changed.Store(false)
	}
	page, err := e.store.Waiting(ctx, queue, s.after, batchSize)
	if err != nil {
		return err
	}
	s.after, s.nextAt = store.Cursor{}, e.Now().Add(strandedInterval)
	if len(page) == batchSize {
		s.after, s.nextAt = store.CursorOf(&page[batchSize-1]), time.Time{}
	}
	for _, t := range page {
		ev := signalbox.Event{Kind: signalbox.EventMove, Queue: signalbox.QueueWork}
		switch t.SessionMode {
		case "":
			continue
		case signalbox.SessionRequire:
			ev = signalbox.Event{Kind: signalbox.EventUndeliverable, Message: strandedMessage(&t, agent, gone)}
		}
		if _, err := e.tryApply(ctx, &t, ev); err != nil {
			return err
		}
	}
	return nil
}

func strandedMessage(t *signalbox.Task, agent string, gone time.Duration) string {
	return fmt.Sprintf("session %s is held by agent %s, which has been gone for %s: start %s again and retry, or submit with session: prefer to go on elsewhere without the conversation",
		t.SessionID, agent, gone.Round(time.Second), agent)
}

// A caller that gets work done on another owner's task or conversation can learn what is in
// it, so that requires the right to read.

// mayRead reports whether a caller may read what belongs to owner. The director itself may,
// and so may anyone while the director is open.
func mayRead(by signalbox.Principal, owner string) bool { return by.Kind == "" || by.MayRead(owner) }

func errNotOwner(by signalbox.Principal, what, id string) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "%s %s is somebody else's: that needs the scope %s, which %s does not have", what, signalbox.Clip(id), signalbox.ScopeRead, by.String())
}

// checkSessionAccess refuses a turn in another owner's conversation. A conversation belongs
// to its first submitter. If no session is named and the agent's current one belongs to
// someone else, the chat starts a new one.
func (e *Engine) checkSessionAccess(ctx context.Context, n *NewTask) error {
	if mayRead(n.By, "") || n.NewSession {
		return nil
	}
	id := n.SessionID
	if id == "" && n.Mode == signalbox.ModeChat {
		var err error
		if id, err = e.CurrentSession(ctx, n.Agent); err != nil {
			return err
		}
	}
	if id == "" {
		return nil
	}
	owner, known, err := e.sessionOwner(ctx, id)
	switch {
	case err != nil || !known || mayRead(n.By, owner):
		return err
	case n.SessionID == "":
		n.NewSession = true
		return nil
	}
	return errNotOwner(n.By, "session", id)
}

// sessionOwner returns the owner of a conversation: its first submitter, or, before an
// agent has it, the submitter of its first waiting turn.
func (e *Engine) sessionOwner(ctx context.Context, id string) (owner string, known bool, err error) {
	s, err := e.store.Session(ctx, id)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return s.Owner, err == nil, err
	}
	turns, err := e.store.SessionTasks(ctx, id, 1)
	if err != nil || len(turns) == 0 {
		return "", false, err
	}
	return turns[0].Owner, true, nil
}

// holderGone explains what will happen to a waiting task of a conversation whose agent is
// not connected, and when; "" for other tasks. ResolveStranded and EndOverdue implement it.
func (e *Engine) holderGone(t *signalbox.Task) string {
	name, one := signalbox.QueueAgent(t.Queue)
	if t.State != signalbox.Pending || t.SessionID == "" || !one {
		return ""
	}
	a, _ := e.LiveAgent(name)
	if a.Up {
		return ""
	}
	who := fmt.Sprintf("agent %s, which holds conversation %s,", name, t.SessionID)
	if t.SessionMode == "" {
		who = fmt.Sprintf("agent %s, for which the task is,", name)
	}
	absent := "is not connected"
	if !a.DownSince.IsZero() {
		absent = "has been gone since " + instant(a.DownSince)
	}
	return fmt.Sprintf("%s %s; %s", who, absent, e.afterGone(t, a.StrandedAt))
}

// afterGone says what happens to a task whose agent is gone. strandedAt is when
// ResolveStranded acts; zero: another director decides.
func (e *Engine) afterGone(t *signalbox.Task, strandedAt time.Time) string {
	if !t.WaitUntil.IsZero() && (t.SessionMode == "" || strandedAt.IsZero() || t.WaitUntil.Before(strandedAt)) {
		return fmt.Sprintf("the task waits for it until %s, then ends with wait_timeout", instant(t.WaitUntil))
	}
	at := "at " + instant(strandedAt)
	switch {
	case strandedAt.IsZero():
		at = "once it has been gone for session_grace"
	case !strandedAt.After(e.Now()):
		at = "now"
	}
	switch t.SessionMode {
	case signalbox.SessionRequire:
		return fmt.Sprintf("unless it is back, the task fails %s (dispatch_failed)", at)
	case signalbox.SessionPrefer:
		return fmt.Sprintf("unless it is back, the task goes %s to the queue %s, where any agent takes it", at, signalbox.QueueWork)
	}
	return "the task waits until it is back"
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }
