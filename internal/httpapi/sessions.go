package httpapi

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// sessionHandlers list, archive and restore conversations.
type sessionHandlers struct {
	engine *engine.Engine
	audit  *access.AuditLog
}

// sessions is GET /api/sessions.
func (h *sessionHandlers) sessions(w http.ResponseWriter, r *http.Request) error {
	q, err := sessionQuery(r)
	if err != nil {
		return err
	}
	page, err := h.engine.Read().Sessions(r.Context(), q)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	out := api.Sessions{Sessions: []api.Session{}, Next: page.Next}
	for i := range page.Sessions {
		if s := &page.Sessions[i]; seesSession(who, s) {
			out.Sessions = append(out.Sessions, sessionView(s))
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func sessionQuery(r *http.Request) (q store.SessionQuery, err error) {
	q = store.SessionQuery{
		Agent: httpio.Param(r, "agent"), Owner: httpio.Param(r, "owner"), Source: signalbox.Source(httpio.Param(r, "source")),
		State: signalbox.SessionActive, Before: httpio.Param(r, "before"),
	}
	switch state := signalbox.SessionState(httpio.Param(r, "state")); state {
	case "":
	case "all":
		q.State = ""
	case signalbox.SessionActive, signalbox.SessionArchived, signalbox.SessionGone:
		q.State = state
	default:
		return q, signalbox.Invalid("state", "state must be active, archived, gone or all, not %q", httpio.Clip(string(state)))
	}
	q.Limit, err = httpio.Limit(r)
	return q, err
}

func seesSession(who signalbox.Principal, s *signalbox.Session) bool {
	return who.Sees(s.Owner, signalbox.AgentQueue(s.Agent), s.Agent)
}

// archiveSession is POST /api/sessions/{id}/archive.
func (h *sessionHandlers) archiveSession(w http.ResponseWriter, r *http.Request) error {
	return h.changeSession(w, r, "archive", h.engine.ArchiveSession)
}

// restoreSession is POST /api/sessions/{id}/restore.
func (h *sessionHandlers) restoreSession(w http.ResponseWriter, r *http.Request) error {
	return h.changeSession(w, r, "restore", h.engine.RestoreSession)
}

func (h *sessionHandlers) changeSession(w http.ResponseWriter, r *http.Request, action string, change func(ctx context.Context, id, by string) (signalbox.Session, error)) error {
	id := r.PathValue("id")
	unknown := httpio.Refuse(signalbox.CodeNotFound, "GET /api/sessions lists them", "there is no session %s", httpio.Clip(id))
	if !signalbox.ValidSessionID(id) {
		return unknown
	}
	s, err := h.engine.Read().Session(r.Context(), id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return unknown
	}
	if err != nil {
		return err
	}
	if !seesSession(access.CallerOf(r).Who, &s) {
		return unknown
	}
	if who := access.CallerOf(r).Who; !who.MayRead(s.Owner) {
		return httpio.Refuse(signalbox.CodeForbidden, "use a token that has it, or that of the conversation's owner",
			"session %s belongs to another owner: to %s it needs the scope %s, and %s has %s", httpio.Clip(id), action, signalbox.ScopeRead, who.String(), access.ScopeWords(who.Scopes))
	}
	if s, err = change(r.Context(), id, access.CallerOf(r).String()); err != nil {
		return err
	}
	return h.audit.WriteAndAnswer(w, r, signalbox.Audit{EventType: "session", Action: action, AgentName: s.Agent, Resource: s.ID}, http.StatusOK, sessionView(&s))
}

func sessionView(s *signalbox.Session) api.Session {
	return api.Session{
		SessionID: s.ID, Agent: s.Agent, State: string(s.State), Current: s.Current, Source: string(s.Source), Owner: s.Owner,
		Title: s.Title, Turns: s.Turns, CreatedAt: s.CreatedAt, LastUsed: s.LastUsed,
	}
}
