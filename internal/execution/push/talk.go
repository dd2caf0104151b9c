package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// A chat continues its agent's current session. If the agent starts sessions under the id
// it is given, the row has that id. Any other agent chooses ids itself: a chat is offered
// to it with the session that is current then, and the one it answers is the one to
// continue.

// continueSession sets the session of an offer for a chat that names none, unless the agent starts sessions
// under the id it is given, or the run continues one in which it was parked.
func (r *run) continueSession(ctx context.Context, offer *api.AgentTask) {
	t, q := r.row(), r.request
	r.d.Mu.Lock()
	lasts := t.SessionID != "" && (r.lane.status.Sessions || offer.Resume != nil)
	r.d.Mu.Unlock()
	if t.Mode != signalbox.ModeChat || q.SessionID != "" || q.NewSession || lasts {
		return
	}
	id, err := r.d.Engine.CurrentSession(ctx, r.lane.Name)
	if err != nil {
		r.d.Log.Error("conversation to continue is unknown", "queue_id", t.ID, "agent", r.lane.Name, "error", err)
		return
	}
	offer.SessionID = id
}

// noteSession records the session in which the agent says it ran a chat.
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

// sessionSync says whether an agent's list of sessions is to be read: once each time it
// comes up, one request at a time.
type sessionSync int

const (
	synced sessionSync = iota
	syncDue
	syncing
	syncAgain // syncing, and it came up again meanwhile
)

func (c *sessionSync) due() bool { return *c == syncDue }
func (c *sessionSync) start()    { *c = syncing }

func (c *sessionSync) request() {
	switch *c {
	case synced:
		*c = syncDue
	case syncing:
		*c = syncAgain
	}
}

// finished ends a sync, successful or not.
func (c *sessionSync) finished() {
	switch *c {
	case syncing:
		*c = synced
	case syncAgain:
		*c = syncDue
	}
}

// syncSessions starts to reconcile the stored sessions of an agent with its own list, if it
// came up since the last time. One request at a time; nothing else waits for it.
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
		d.syncSessions(l) // in case it came up again
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
		used := s.LastUsed.UTC().Truncate(time.Millisecond) // stores keep milliseconds
		if used.IsZero() || used.After(asked) {
			used = asked // its clock is ahead, or it does not report it
		}
		has = append(has, signalbox.Session{ID: s.SessionID, LastUsed: used})
	}
	return d.Engine.ReconcileSessions(ctx, agent, has, asked)
}
