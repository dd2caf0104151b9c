package access

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ResultOf returns the audit result for an error; nil is success.
func ResultOf(err error) string {
	if err != nil {
		return signalbox.AuditFailed
	}
	return signalbox.AuditSuccess
}

// maxUserAgent is how many characters of a User-Agent header are kept.
const maxUserAgent = 200

// AuditLog writes the audit log and answers queries about it.
type AuditLog struct {
	engine  *engine.Engine
	log     *slog.Logger
	denials denials
}

func NewAuditLog(e *engine.Engine, log *slog.Logger) *AuditLog {
	return &AuditLog{engine: e, log: log, denials: newDenials()}
}

// Write writes a row about an action of the caller of r. It sets the principal and the
// address from the caller; the handler sets the rest.
func (a *AuditLog) Write(r *http.Request, row signalbox.Audit) error {
	return a.WriteAs(r, CallerOf(r).Who, row)
}

// WriteAs is Write for a caller authenticated other than by the headers of r, such as by
// a ticket.
func (a *AuditLog) WriteAs(r *http.Request, who signalbox.Principal, row signalbox.Audit) error {
	row.Principal = who.Key()
	if who.Kind == signalbox.PrincipalUser {
		row.UserID = who.ID
	}
	row.IPAddress, row.UserAgent = callerFrom(r).Addr, printable(r.UserAgent())
	row.Result = cmp.Or(row.Result, signalbox.AuditSuccess)
	if _, err := a.engine.Audit(r.Context(), row); err != nil {
		return &httpio.Refusal{
			Err:   &signalbox.Error{Code: signalbox.CodeInternal, Message: "it was done, but could not be recorded in the audit log", Err: err},
			Hint:  "check the state before you try again; the director's log has the cause under the request id",
			Plain: true,
		}
	}
	return nil
}

// WriteAndAnswer writes a row and answers with v; nil is an answer without a body.
func (a *AuditLog) WriteAndAnswer(w http.ResponseWriter, r *http.Request, row signalbox.Audit, status int, v any) error {
	if err := a.Write(r, row); err != nil {
		return err
	}
	if v == nil {
		return httpio.NoContent(w)
	}
	return httpio.Answer(w, status, v)
}

// printable makes a header safe for a log: one line of limited length.
func printable(s string) string {
	var out strings.Builder
	n := 0
	for _, r := range s {
		if n == maxUserAgent {
			break
		}
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			r = '?'
		}
		out.WriteRune(r)
		n++
	}
	return out.String()
}

// List is GET /api/audit.
func (a *AuditLog) List(w http.ResponseWriter, r *http.Request) error {
	q, err := a.query(r)
	if err != nil {
		return err
	}
	rows, err := a.engine.Read().AuditLog(r.Context(), q)
	if err != nil {
		return err
	}
	out := api.AuditLog{Rows: make([]api.AuditRow, len(rows))}
	for i := range rows {
		out.Rows[i] = api.AuditRow(rows[i])
	}
	if len(rows) == q.Limit {
		out.Next = rows[len(rows)-1].Seq
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func (a *AuditLog) query(r *http.Request) (q store.AuditQuery, err error) {
	q = store.AuditQuery{
		EventType: httpio.Param(r, "event_type"), Action: httpio.Param(r, "action"), UserID: httpio.Param(r, "user_id"),
		AgentName: httpio.Param(r, "agent"), Severity: httpio.Param(r, "severity"),
	}
	after, err := httpio.Position("after", httpio.Param(r, "after"))
	if err != nil {
		return q, err
	}
	q.After = max(after, 0)
	switch s := httpio.Param(r, "newest"); s {
	case "", "false":
	case "true":
		q.Newest = true
	default:
		return q, signalbox.Invalid("newest", "newest must be true or false, not %q", httpio.Clip(s))
	}
	if q.Since, err = httpio.When(r, "since", a.engine.Now()); err != nil {
		return q, err
	}
	q.Limit, err = httpio.Limit(r)
	return q, err
}

// Head is GET /api/audit/head.
func (a *AuditLog) Head(w http.ResponseWriter, r *http.Request) error {
	head, err := a.engine.Read().AuditHead(r.Context())
	if err != nil {
		return err
	}
	out := api.AuditHead{Seq: head.Seq, Hash: head.Hash, At: view.Time(head.At)}
	if out.Hash == "" { // the hash that the first row of an empty log will refer to
		out.Hash = signalbox.AuditRoot
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// WriteDenied records a 403. The answer is 403 whether or not it could be recorded.
func (a *AuditLog) WriteDenied(r *http.Request, action string) {
	a.writeBounded(r, signalbox.Audit{
		EventType: "access", Action: action, AgentName: deniedAgent(r), Resource: httpio.Clip(r.Method + " " + r.URL.Path), Result: signalbox.AuditDenied, Severity: signalbox.AuditWarning,
	}, nil)
}

// deniedAgent is the agent in the path of a request; "" if it is not a valid name.
func deniedAgent(r *http.Request) string {
	if name := r.PathValue("name"); signalbox.ValidName(name) {
		return name
	}
	return ""
}

// writeBounded is Write with a rate limit, for rows that unauthenticated callers can cause.
func (a *AuditLog) writeBounded(r *http.Request, row signalbox.Audit, more map[string]any) {
	left, ok := a.denials.take(identity.AddrBlock(callerFrom(r).Addr), time.Now())
	if !ok {
		return
	}
	if more == nil {
		more = map[string]any{}
	}
	if left > 0 {
		more["left_out"] = left
	}
	if len(more) > 0 {
		row.Details = signalbox.AuditDetails(more)
	}
	if err := a.Write(r, row); err != nil {
		a.log.Error("a refusal was not recorded", "error", err)
	}
}
