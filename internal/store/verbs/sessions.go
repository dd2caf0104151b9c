package verbs

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// session returns the row of a session, nil if there is none, or if that is unknown: then
// missing is set.
func (x *workingSet) session(id string) (*signalbox.Session, error) {
	return decodeDoc(x.doc(kindSession, id), pack.ReadSession)
}

// chooseSession sets the session of a chat that names none.
func (x *workingSet) chooseSession(t *signalbox.Task, k *store.ChatSession) error {
	if k == nil || t.SessionID != "" {
		return nil
	}
	t.SessionID = k.New
	if !k.Continue {
		return nil
	}
	id := nameOf(x.doc(kindCurrent, k.Agent))
	if id == "" {
		return nil
	}
	held, err := x.session(id)
	if err == nil && held != nil && held.State == signalbox.SessionActive {
		t.SessionID = id
	}
	return err
}

// chatSession returns the session of a chat as its agent's current one: a new one if it does not exist; nil
// if it stays unchanged.
func (x *workingSet) chatSession(t *signalbox.Task, held *signalbox.Session, sub *store.Submission) (*signalbox.Session, error) {
	if sub.Chat == nil || t.SessionID == "" {
		return nil, nil
	}
	var kept signalbox.Session
	switch {
	case held == nil:
		kept = store.BeginSession(t, sub.Chat.Agent, sub.Now)
	case held.Agent != sub.Chat.Agent || held.Current:
		return nil, nil
	default:
		kept = *held
	}
	kept.Current = true
	return &kept, x.prepareStore(held, &kept)
}

// prepareStore makes sure that everything storeSession needs is loaded.
func (x *workingSet) prepareStore(was, s *signalbox.Session) error {
	if was != nil && was.Current {
		x.doc(kindCurrent, was.Agent)
	}
	if s.Current {
		if other := nameOf(x.doc(kindCurrent, s.Agent)); other != "" && other != s.ID {
			if _, err := x.session(other); err != nil {
				return err
			}
		}
	}
	if x.missing {
		return errMissing
	}
	return nil
}

// storeSession stores the row of a session. If it is current, the agent's other session no
// longer is.
func (x *workingSet) storeSession(was *signalbox.Session, s signalbox.Session) error {
	if was != nil && was.Current && (was.Agent != s.Agent || !s.Current) {
		x.drop(kindCurrent, was.Agent)
	}
	if s.Current {
		other := nameOf(x.doc(kindCurrent, s.Agent))
		if other != "" && other != s.ID {
			held, err := x.session(other)
			if err != nil {
				return err
			}
			if held != nil {
				past := *held
				past.Current = false
				x.putSession(past)
			}
		}
		if other != s.ID {
			x.put(kindCurrent, s.Agent, 0, nameBody(s.ID), nil)
		}
	}
	x.putSession(s)
	return nil
}

func (x *workingSet) putSession(s signalbox.Session) {
	x.put(kindSession, s.ID, s.LastUsed.UnixMilli(), pack.Session(&s), &s)
}

type putSession struct {
	before, after signalbox.Session
	entry         signalbox.Entry
}

// PutSession stores a session if it is unchanged since before was read, else ErrStale.
func (s *Store) PutSession(ctx context.Context, before, after signalbox.Session, e signalbox.Entry) error {
	return s.do(ctx, &putSession{before, after, e}, len(after.Title))
}

func (v *putSession) run(x *workingSet) error {
	was, err := x.session(v.after.ID)
	if err != nil {
		return err
	}
	busy := v.after.ID != "" && x.nextTurn(v.after.ID).any()
	if x.missing {
		return errMissing
	}
	row, write, err := store.PutSession(was, v.before, v.after, busy)
	if err != nil || !write {
		return err
	}
	if err := x.prepareStore(was, &row); err != nil {
		return err
	}
	if err := x.storeSession(was, row); err != nil {
		return err
	}
	x.note(v.entry)
	return nil
}

// Session returns the row of a session, or CodeNotFound.
func (s *Store) Session(ctx context.Context, id string) (signalbox.Session, error) {
	held, err := readDoc(ctx, s, kindSession, id, pack.ReadSession)
	if err != nil {
		return signalbox.Session{}, err
	}
	if held == nil {
		return signalbox.Session{}, signalbox.Errorf(signalbox.CodeNotFound, "no agent holds session %q", id)
	}
	return *held, nil
}

const (
	// sessionRows bounds the rows that Sessions reads for one page, sessionPage those it
	// reads at once.
	sessionRows = 10_000
	sessionPage = 1000
)

// Sessions lists sessions, last used first.
func (s *Store) Sessions(ctx context.Context, q store.SessionQuery) (page store.SessionPage, err error) {
	if err := s.ready(ctx); err != nil {
		return page, err
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	from, err := store.ParseSessionCursor(q.Before)
	if err != nil {
		return page, err
	}
	ask := Page{Kind: kindSession, BySort: true, Falling: true, Limit: min(sessionPage, q.Limit+1)}
	if q.Before != "" {
		ask.After = &Doc{DocKey: DocKey{kindSession, from.ID}, Sort: from.Used}
	}
	for looked := 0; ; {
		docs, err := s.page(ctx, ask)
		if err != nil {
			return store.SessionPage{}, err
		}
		list, err := decodeAll(docs, pack.ReadSession)
		if err != nil {
			return store.SessionPage{}, err
		}
		for i := range list {
			if len(page.Sessions) == q.Limit || looked == sessionRows {
				page.Next = store.SessionCursor{Used: ask.After.Sort, ID: ask.After.ID}.Cursor()
				return page, nil
			}
			looked++
			ask.After = &Doc{DocKey: docs[i].DocKey, Sort: docs[i].Sort}
			if q.Matches(&list[i]) {
				page.Sessions = append(page.Sessions, list[i])
			}
		}
		if len(docs) < ask.Limit {
			return page, nil
		}
		ask.Limit = sessionPage
	}
}
