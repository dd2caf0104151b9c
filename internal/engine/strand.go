package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// strandAgain is how long a queue in which nothing was to be done is left alone,
// unless a task of a session comes into it.
const strandAgain = 30 * time.Second

// strands is how far the queues of gone agents have been looked through.
type strands struct {
	mu     sync.Mutex
	queues map[string]strandPass // by queue
}

// strandPass is one pass through a queue. A page is read at a time: what a gone
// agent's queue holds may be much, and is looked at every second.
type strandPass struct {
	after   store.Cursor // the page before ended here; zero: a pass begins
	again   time.Time    // unless something changes, the next pass begins then
	changed bool         // a task of a session came since the pass began
}

// next says where the next page of a queue begins; due is false where none is.
func (s *strands) next(queue string, now time.Time) (after store.Cursor, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.queues[queue]
	if !p.changed && now.Before(p.again) {
		return p.after, false
	}
	if p.after == (store.Cursor{}) {
		p.changed = false
	}
	if s.queues == nil {
		s.queues = map[string]strandPass{}
	}
	s.queues[queue] = p
	return p.after, true
}

// read notes that a page was read, of which last is the last task; nil where the
// pass is over.
func (s *strands) read(queue string, last *signalbox.Task, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := strandPass{changed: s.queues[queue].changed}
	if last != nil {
		p.after = store.CursorOf(last)
	} else {
		p.again = now.Add(strandAgain)
	}
	s.queues[queue] = p
}

// observe lets the next pass begin at once where a task came into the queue that
// it may have to deal with.
func (s *strands) observe(a *Applied) {
	t := &a.Task
	if t.State != signalbox.Pending || (t.SessionMode == "" && !a.Partial) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.queues[t.Queue]; ok {
		p.changed = true
		s.queues[t.Queue] = p
	}
}

// Strand deals with the tasks that wait for an agent because it holds their
// session, when that agent has been gone for the session grace: they end
// with a message that says what to do, or move to all agents where the task
// said session: prefer. Tasks that named the agent go on waiting. One call looks
// at no more than 500 tasks; it is meant to be called every second.
func (e *Engine) Strand(ctx context.Context, agent string, gone time.Duration) error {
	queue := signalbox.AgentQueue(agent)
	after, due := e.strands.next(queue, e.Now())
	if !due {
		return nil
	}
	page, err := e.store.Waiting(ctx, queue, after, batch)
	if err != nil {
		return err
	}
	var last *signalbox.Task
	if len(page) == batch {
		last = &page[batch-1]
	}
	e.strands.read(queue, last, e.Now())
	for _, t := range page {
		ev := signalbox.Event{Kind: signalbox.EventMove, Queue: signalbox.QueueWork}
		switch t.SessionMode {
		case "":
			continue
		case signalbox.SessionRequire:
			ev = signalbox.Event{Kind: signalbox.EventUndeliverable, Message: stranded(&t, agent, gone)}
		}
		_, err := e.apply(ctx, t.ID, &t, ev)
		switch signalbox.CodeOf(err) {
		case "", signalbox.CodeConflict, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
		default:
			return err
		}
	}
	return nil
}

func stranded(t *signalbox.Task, agent string, gone time.Duration) string {
	return fmt.Sprintf("session %s is held by agent %s, which has been gone for %s: start %s again and retry, or submit with session: prefer to go on elsewhere without the conversation",
		t.SessionID, agent, gone.Round(time.Second), agent)
}

// To submit is not to read: what a caller gets done with a task of somebody else,
// or in a conversation of somebody else, shows what is in it.

// mayRead reports whether a caller may read what belongs to owner. The director
// itself may, and whoever asks it while it is open.
func mayRead(by signalbox.Principal, owner string) bool { return by.Kind == "" || by.MayRead(owner) }

func notOwn(by signalbox.Principal, what, id string) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "%s %s is somebody else's: that needs the scope %s, which %s does not have", what, clip(id), signalbox.ScopeRead, by.String())
}

// checkTalk refuses a turn in a conversation of somebody else. A conversation is
// its first submitter's. One that is not named is the agent's current one: where
// that is somebody else's, a new one is begun.
func (e *Engine) checkTalk(ctx context.Context, n *NewTask) error {
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
	return notOwn(n.By, "session", id)
}

// sessionOwner returns whose a conversation is: who began it, or, before an agent
// has it, who waits for its first turn.
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

// gone says what becomes of a waiting task of a conversation whose agent is not
// connected, and when; "" for every other task. Strand and EndOverdue do it.
func (e *Engine) gone(t *signalbox.Task) string {
	name, one := signalbox.QueueAgent(t.Queue)
	if t.State != signalbox.Pending || t.SessionID == "" || !one {
		return ""
	}
	a, _ := e.live.LiveAgent(name)
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
	return fmt.Sprintf("%s %s; %s", who, absent, e.afterGone(t, a.StrandAt))
}

// afterGone says what becomes of a task whose agent is gone. strandAt is when
// Strand is called; zero: another director does that.
func (e *Engine) afterGone(t *signalbox.Task, strandAt time.Time) string {
	if !t.WaitUntil.IsZero() && (t.SessionMode == "" || strandAt.IsZero() || t.WaitUntil.Before(strandAt)) {
		return fmt.Sprintf("the task waits for it until %s, then ends with wait_timeout", instant(t.WaitUntil))
	}
	at := "at " + instant(strandAt)
	switch {
	case strandAt.IsZero():
		at = "once it has been gone for session_grace"
	case !strandAt.After(e.Now()):
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
