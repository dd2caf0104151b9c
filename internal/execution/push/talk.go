package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// A chat goes on with its agent's current conversation. Where the agent
// begins conversations under the id it is given, the row has it. Any other
// agent names its conversations itself: a chat is offered to it with the one
// that is current then, and what it answers is the one to go on with.

// goOn puts the conversation to go on with into the offer of a chat that names
// none and was given none that is sure to last.
func (r *run) continueSession(ctx context.Context, offer *api.AgentTask) {
	t, q := r.row(), r.request
	r.d.Mu.Lock()
	lasts := r.lane.status.Sessions && t.SessionID != ""
	r.d.Mu.Unlock()
	if t.Mode != signalbox.ModeChat || q.SessionID != "" || q.NewSession || lasts {
		return
	}
	id, err := r.d.Engine.CurrentSession(ctx, r.lane.Name)
	if err != nil {
		r.d.Log.Error("conversation to go on with is not known", "queue_id", t.ID, "agent", r.lane.Name, "error", err)
		return
	}
	offer.SessionID = id
}

// took notes in which conversation the agent ran a chat, as it said.
func (r *run) noteSession(ctx context.Context, session string) {
	t := r.row()
	r.d.Mu.Lock()
	named := r.lane.status.Sessions && r.session != ""
	r.d.Mu.Unlock()
	if t.Mode != signalbox.ModeChat || session == "" || session == r.session || named {
		return
	}
	r.session = session
	if err := r.d.Engine.AdoptSession(ctx, t, session); err != nil && ctx.Err() == nil {
		r.d.Log.Error("conversation not made the current one", "queue_id", t.ID, "agent", r.lane.Name, "session", session, "error", err)
	}
}

// conversations says whether the list of an agent's conversations is to be asked
// for: once each time that it comes up, one question at a time.
type sessionSync int

const (
	synced sessionSync = iota
	syncDue
	syncing
	syncAgain // asking; it came up anew meanwhile
)

func (c *sessionSync) due() bool { return *c == syncDue }
func (c *sessionSync) start()    { *c = syncing }

// want has it asked for.
func (c *sessionSync) request() {
	switch *c {
	case synced:
		*c = syncDue
	case syncing:
		*c = syncAgain
	}
}

// answered takes in that the question is over, with an answer or without.
func (c *sessionSync) finished() {
	switch *c {
	case syncing:
		*c = synced
	case syncAgain:
		*c = syncDue
	}
}

// askSessions begins to reconcile the stored conversations of an agent with
// those it has, where it came up and was not asked since. One question at a
// time; nothing else waits for it.
func (d *Dispatcher) syncSessions(l *lane) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if !l.sessionSync.due() || !l.Presence.Up() || !l.status.Sessions || !l.ours() {
		return
	}
	conn, t := l.conn, l.term
	begun := d.goInTerm(l, t, func() {
		d.Turn("sessions", l.Name, 0)
		if err := d.reconcileSessions(t.ctx, l.Name, conn); err != nil && t.ctx.Err() == nil {
			d.Log.Warn("conversations of an agent not reconciled, tried again when it comes up next", "agent", l.Name, "error", err)
		}
		d.Mu.Lock()
		l.sessionSync.finished()
		d.Mu.Unlock()
		d.syncSessions(l) // it came up anew in the meantime
	})
	if begun {
		l.sessionSync.start()
	}
}

func (d *Dispatcher) reconcileSessions(ctx context.Context, agent string, c *conn) error {
	asked := d.Engine.Now()
	list, err := c.sessions(ctx)
	if err != nil {
		return err
	}
	if len(list) >= maxSessions {
		d.Log.Warn("an agent lists as many conversations as it can: which ones are gone is not known", "agent", agent, "listed", len(list))
		return nil
	}
	has := make([]signalbox.Session, 0, len(list))
	for _, s := range list {
		if !signalbox.ValidSessionID(s.SessionID) {
			continue
		}
		used := s.LastUsed.UTC().Truncate(time.Millisecond) // a store keeps no more
		if used.IsZero() || used.After(asked) {
			used = asked // its clock is ahead, or it does not say
		}
		has = append(has, signalbox.Session{ID: s.SessionID, LastUsed: used})
	}
	return d.Engine.ReconcileSessions(ctx, agent, has, asked)
}
