package httpapi

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// lane is GET /api/agents/{name}/queue.
func (d *Server) lane(w http.ResponseWriter, r *http.Request) error {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	l, err := d.engine.Lane(r.Context(), row.Name)
	if err != nil {
		return err
	}
	out := api.Lane{
		AgentName: row.Name, IsBusy: l.Busy(), QueueLength: l.Length, QueuedExecutions: executionViews(l.Waiting),
		Executions: executionViews(l.Running), Bypass: executionViews(l.Isolated), Slots: l.Slots,
		MaxQueueSize: d.engine.Options().MaxChats, Paused: view.Pauses(l.Pauses),
	}
	for i := range l.Withheld {
		lost := executionView(&l.Withheld[i])
		lost.Status = seedStatus(signalbox.Working) // as far as is known
		out.Executions = append(out.Executions, lost)
	}
	if len(out.Executions) > 0 {
		out.CurrentExecution = &out.Executions[0]
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func executionViews(tasks []signalbox.Task) []api.Execution {
	views := make([]api.Execution, len(tasks))
	for i := range tasks {
		views[i] = executionView(&tasks[i])
	}
	return views
}

// executionView is a task in the words of the seed execution-queue.
func executionView(t *signalbox.Task) api.Execution {
	v := api.Execution{
		ID: t.ID, AgentName: agentOf(t), Source: seedSource(t), SourceUserEmail: t.OwnerEmail, Message: t.Preview,
		QueuedAt: t.CreatedAt, Status: seedStatus(t.State),
	}
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	v.SourceUserID, _ = signalbox.OwnerUser(t.Owner)
	if t.State != signalbox.Pending { // what the row keeps of an execution that came to nothing is over
		v.StartedAt = view.Time(t.StartedAt)
	}
	return v
}

// agentOf is the agent that runs or ran a task, or else the only one that may;
// "" where that is not known yet.
func agentOf(t *signalbox.Task) string {
	if t.Mode == signalbox.ModeTool {
		return "" // the director's own executor is none
	}
	if t.State != signalbox.Pending && t.Agent != "" {
		return t.Agent
	}
	name, _ := signalbox.OnlyAgent(t.Queue)
	return name
}

// seedSource is the seed's word for who triggered a task.
func seedSource(t *signalbox.Task) string {
	if t.Source == signalbox.SourceScheduler { // also of an agent's schedule
		return "schedule"
	}
	if _, ok := signalbox.OwnerAgent(t.Owner); ok || t.Source == signalbox.SourceAgent {
		return "agent"
	}
	return "user"
}

// seedStatus is the seed's word for a state (design §2).
func seedStatus(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching:
		return "queued"
	case signalbox.Working, signalbox.Cancelling:
		return "running"
	}
	return string(s)
}

// sessions is GET /api/sessions.
func (d *Server) sessions(w http.ResponseWriter, r *http.Request) error {
	q, err := sessionQuery(r)
	if err != nil {
		return err
	}
	page, err := d.engine.Read().Sessions(r.Context(), q)
	if err != nil {
		return err
	}
	who := callerOf(r).who
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
func (d *Server) archiveSession(w http.ResponseWriter, r *http.Request) error {
	return d.changeSession(w, r, "archive", d.engine.ArchiveSession)
}

// restoreSession is POST /api/sessions/{id}/restore.
func (d *Server) restoreSession(w http.ResponseWriter, r *http.Request) error {
	return d.changeSession(w, r, "restore", d.engine.RestoreSession)
}

func (d *Server) changeSession(w http.ResponseWriter, r *http.Request, action string, change func(ctx context.Context, id, by string) (signalbox.Session, error)) error {
	id := r.PathValue("id")
	unknown := httpio.Refuse(signalbox.CodeNotFound, "GET /api/sessions lists them", "there is no session %s", httpio.Clip(id))
	if !signalbox.ValidSessionID(id) {
		return unknown
	}
	s, err := d.engine.Read().Session(r.Context(), id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return unknown
	}
	if err != nil {
		return err
	}
	if !seesSession(callerOf(r).who, &s) {
		return unknown
	}
	if who := callerOf(r).who; !who.MayRead(s.Owner) {
		return httpio.Refuse(signalbox.CodeForbidden, "show a token that has it, or that of who began the conversation",
			"session %s is somebody else's: to %s it needs the scope %s, and %s has %s", httpio.Clip(id), action, signalbox.ScopeRead, who.String(), scopeWords(who.Scopes))
	}
	if s, err = change(r.Context(), id, callerOf(r).String()); err != nil {
		return err
	}
	return d.recorded(w, r, signalbox.Audit{EventType: "session", Action: action, AgentName: s.Agent, Resource: s.ID}, http.StatusOK, sessionView(&s))
}

func sessionView(s *signalbox.Session) api.Session {
	return api.Session{
		SessionID: s.ID, Agent: s.Agent, State: string(s.State), Current: s.Current, Source: string(s.Source), Owner: s.Owner,
		Title: s.Title, Turns: s.Turns, CreatedAt: s.CreatedAt, LastUsed: s.LastUsed,
	}
}
