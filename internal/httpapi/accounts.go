package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gates"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// accountHandlers list, open, close and remove accounts.
type accountHandlers struct {
	engine *engine.Engine
	audit  *access.AuditLog
}

// list is GET /api/accounts. Callers that are limited to some agents see the accounts of
// these agents.
func (h *accountHandlers) list(w http.ResponseWriter, r *http.Request) error {
	all, err := h.accounts(r.Context(), access.CallerOf(r).Who)
	return httpio.AnswerOr(w, api.Accounts{Accounts: all}, err)
}

func (h *accountHandlers) accounts(ctx context.Context, who signalbox.Principal) ([]api.Account, error) {
	now, err := gates.Read(ctx, h.engine, nil)
	if err != nil {
		return nil, err
	}
	agents := map[string][]string{}
	for a := range now.Agents {
		if a.Up && a.Account != "" && who.MayUse(a.Name) {
			agents[a.Account] = append(agents[a.Account], a.Name)
		}
	}
	views := make([]api.Account, 0, len(now.Accounts))
	for i := range now.Accounts {
		v := view.Account(&now.Accounts[i])
		v.Agents = append([]string{}, agents[v.Name]...)
		slices.Sort(v.Agents)
		load := now.Loads[signalbox.GateRef{Kind: signalbox.GateAccount, Name: v.Name}]
		v.Parked, v.Waiting = load.Parked, load.Waiting
		if who.Limited() && len(v.Agents) == 0 {
			continue
		}
		views = append(views, v)
	}
	return views, nil
}

// open is POST /api/accounts/{name}/open.
func (h *accountHandlers) open(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, signalbox.AccountEvent{Kind: signalbox.AccountOpened})
}

// close is POST /api/accounts/{name}/close.
func (h *accountHandlers) close(w http.ResponseWriter, r *http.Request) error {
	var req api.AccountClose
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return err
	}
	ev := signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Reason: req.Reason}
	if req.Until != nil {
		ev.Until = req.Until.UTC()
	}
	return h.change(w, r, ev)
}

// remove is DELETE /api/accounts/{name}.
func (h *accountHandlers) remove(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := h.engine.RemoveAccount(r.Context(), name, access.CallerOf(r).String()); err != nil {
		return err
	}
	return h.audit.WriteAndAnswer(w, r, signalbox.Audit{EventType: "account", Action: "remove", Resource: name}, http.StatusNoContent, nil)
}

func (h *accountHandlers) change(w http.ResponseWriter, r *http.Request, ev signalbox.AccountEvent) error {
	ev.Account, ev.Source = r.PathValue("name"), access.CallerOf(r).String()
	after, before, err := h.engine.SetAccount(r.Context(), ev)
	if err != nil {
		return err
	}
	row := signalbox.Audit{
		EventType: "account", Action: string(ev.Kind), Resource: ev.Account,
		Details: signalbox.AuditDetails(map[string]any{"before": view.Account(&before).Text, "after": after.String(), "reason": ev.Reason}),
	}
	all, err := h.accounts(r.Context(), access.CallerOf(r).Who)
	i := slices.IndexFunc(all, func(a api.Account) bool { return a.Name == ev.Account })
	if err != nil || i < 0 { // the change itself succeeded
		all, i = []api.Account{view.Account(&after)}, 0
	}
	return h.audit.WriteAndAnswer(w, r, row, http.StatusOK, all[i])
}

// gateHandler lists the closed gates.
type gateHandler struct {
	engine *engine.Engine
	tools  Tools
}

// list is GET /api/gates. Callers that are limited to some agents see the gates of these agents.
func (h *gateHandler) list(w http.ResponseWriter, r *http.Request) error {
	var queues []toolqueue.Status
	if h.tools != nil {
		queues = h.tools.Queues()
	}
	now, err := gates.Read(r.Context(), h.engine, queues)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.Gates{Gates: view.Gates(gates.List(now), access.CallerOf(r).Who)})
}
