package sqlite

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func bindSession(q *query, s *signalbox.Session) *query {
	state := s.State
	if state == signalbox.SessionActive {
		state = ""
	}
	q.exact(s.ID).exact(s.Agent).text(string(s.Source)).text(s.Owner).text(s.Title).text(string(state))
	q.some(int64(s.Turns)).time(s.CreatedAt).int(s.LastUsed.UnixMilli())
	if s.Current {
		return q.int(1)
	}
	return q.null()
}

func scanSession(q *query) signalbox.Session {
	s := signalbox.Session{
		ID: q.textAt(0), Agent: q.textAt(1), Source: signalbox.Source(q.textAt(2)), Owner: q.textAt(3), Title: q.textAt(4),
		State: signalbox.SessionState(q.textAt(5)), Turns: int(q.intAt(6)), CreatedAt: q.timeAt(7), LastUsed: q.timeAt(8),
		Current: q.boolAt(9),
	}
	if s.State == "" {
		s.State = signalbox.SessionActive
	}
	return s
}

// oneSession runs a statement that returns at most one session; nil if it
// returns none.
func oneSession(q *query) (s *signalbox.Session, err error) {
	if q.next() {
		row := scanSession(q)
		s = &row
	}
	return s, q.end()
}

func (c *conn) session(id string) (*signalbox.Session, error) {
	q := c.on(stSessionGet)
	return oneSession(q.exact(id))
}

// current returns the session that chats of an agent go on with; nil if there
// is none.
func (c *conn) current(agent string) (*signalbox.Session, error) {
	q := c.on(stSessionCurrent)
	return oneSession(q.exact(agent))
}

// chooseSession sets the session of a chat that names none.
func (w *writer) chooseSession(t *signalbox.Task, k *store.Talk) error {
	if k == nil || t.SessionID != "" {
		return nil
	}
	t.SessionID = k.New
	if !k.Continue {
		return nil
	}
	held, err := w.current(k.Agent)
	if err == nil && held != nil && held.State == signalbox.SessionActive {
		t.SessionID = held.ID
	}
	return err
}

// checkTalk refuses a chat in a session that is not active.
func (w *writer) checkTalk(t *signalbox.Task, k *store.Talk) error {
	if k == nil || t.SessionID == "" {
		return nil
	}
	held, err := w.session(t.SessionID)
	if err != nil || held == nil {
		return err
	}
	if err := store.CheckTalk(held); err != nil {
		return w.taken(t, err)
	}
	return nil
}

// converse makes the session of a chat the agent's current one, and begins it
// where there is none.
func (w *writer) converse(t *signalbox.Task, k *store.Talk, now time.Time) error {
	if k == nil {
		return nil
	}
	held, err := w.session(t.SessionID)
	switch {
	case err != nil:
		return err
	case held == nil:
		begun := store.BeginSession(t, k.Agent, now)
		held = &begun
	case held.Agent != k.Agent || held.Current:
		return nil
	}
	held.Current = true
	return w.keepSession(*held)
}

// keepSession stores the row of a session. A current one takes that from the
// agent's others.
func (w *writer) keepSession(s signalbox.Session) error {
	if s.Current {
		q := w.write(stSessionUncurrent)
		if err := q.exact(s.Agent).exact(s.ID).run(); err != nil {
			return err
		}
	}
	q := w.write(stSessionPut)
	return bindSession(&q, &s).run()
}

// PutSession stores a session where it is still as it was.
func (s *Store) PutSession(ctx context.Context, before, after signalbox.Session, e signalbox.Entry) error {
	return s.do(ctx, len(after.Title), func(w *writer) error {
		was, err := w.session(after.ID)
		if err != nil {
			return err
		}
		busy, err := w.underWay(after.ID)
		if err != nil {
			return err
		}
		row, write, err := store.PutSession(was, before, after, busy)
		if err != nil || !write {
			return err
		}
		if err := w.keepSession(row); err != nil {
			return err
		}
		w.note(&e)
		return nil
	})
}

// underWay reports whether a turn of a session is pending or in flight.
func (w *writer) underWay(session string) (bool, error) {
	if session == "" {
		return false, nil
	}
	q := w.on(stSessionIn)
	turn, err := one(q.exact(session).int(1))
	return turn != nil, err
}

// Session returns the row of a session, or CodeNotFound.
func (s *Store) Session(ctx context.Context, id string) (got signalbox.Session, err error) {
	err = s.read(ctx, func(c *conn) error {
		held, err := c.session(id)
		if err != nil {
			return err
		}
		if held == nil {
			return signalbox.Errorf(signalbox.CodeNotFound, "no agent holds session %q", id)
		}
		got = *held
		return nil
	})
	return got, err
}

// sessionRows is how many rows Sessions looks at for one page.
const sessionRows = 10_000

// Sessions lists sessions, the last used first.
func (s *Store) Sessions(ctx context.Context, q store.SessionQuery) (page store.SessionPage, err error) {
	if err := s.ready(ctx); err != nil {
		return page, err
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	from, err := store.ParseSessionSpot(q.Before)
	if err != nil {
		return page, err
	}
	err = s.read(ctx, func(c *conn) (err error) {
		if q.Current && q.Agent != "" && q.Before == "" {
			page, err = c.currentPage(&q)
		} else {
			page, err = c.sessionPage(&q, from)
		}
		return err
	})
	return page, err
}

// currentPage is the page of an agent's current session: there is one at most.
func (c *conn) currentPage(q *store.SessionQuery) (page store.SessionPage, err error) {
	held, err := c.current(q.Agent)
	if err == nil && held != nil && q.Takes(held) {
		page.Sessions = []signalbox.Session{*held}
	}
	return page, err
}

func (c *conn) sessionPage(s *store.SessionQuery, from store.SessionSpot) (page store.SessionPage, err error) {
	id := stSessionsBefore
	if s.Agent != "" {
		id = stSessionsOfAgent
	}
	q := c.on(id)
	q.int(from.Used).exact(from.ID).int(sessionRows + 1)
	if s.Agent != "" {
		q.exact(s.Agent)
	}
	var last signalbox.Session
	for n := 0; q.next(); n++ {
		if n == sessionRows || len(page.Sessions) == s.Limit {
			page.Next = store.SpotOf(&last).Cursor()
			break
		}
		last = scanSession(&q)
		if s.Takes(&last) {
			page.Sessions = append(page.Sessions, last)
		}
	}
	return page, q.end()
}
