package httpapi

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// Landings lands the work of tasks; *landing.Driver implements it.
type Landings interface {
	Ask(ctx context.Context, id string, wish signalbox.LandWish, by string) (signalbox.Task, error)
	Drop(ctx context.Context, id, by string) (signalbox.Task, error)
	Places(open []signalbox.Task) map[string]int
	Trouble(t *signalbox.Task) string
}

type landingHandlers struct {
	engine   *engine.Engine
	landings Landings // nil: this director does not land
	tasks    *taskHandlers
}

// land is POST /api/queue/{id}/land.
func (h *landingHandlers) land(w http.ResponseWriter, r *http.Request) error {
	var req api.LandRequest
	id, err := httpio.TaskID(r)
	if err == nil {
		err = httpio.Decode(w, r, &req, true)
	}
	if err != nil {
		return err
	}
	return h.change(w, r, http.StatusAccepted, "land", func(by string) (signalbox.Task, error) {
		return h.landings.Ask(r.Context(), id, signalbox.LandWish{Onto: req.Onto, Method: req.Method, FastForward: req.FastForward}, by)
	})
}

// drop is DELETE /api/queue/{id}/land.
func (h *landingHandlers) drop(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	return h.change(w, r, http.StatusOK, "drop_landing", func(by string) (signalbox.Task, error) {
		return h.landings.Drop(r.Context(), id, by)
	})
}

func (h *landingHandlers) change(w http.ResponseWriter, r *http.Request, status int, action string, do func(by string) (signalbox.Task, error)) error {
	if h.landings == nil {
		return signalbox.Errorf(signalbox.CodeUnsupported, "this director does not land work")
	}
	t, err := do(access.CallerOf(r).String())
	if err == nil {
		err = h.tasks.auditOther(r, action, &t)
	}
	if err != nil {
		return err
	}
	places, err := landingPlaces(r.Context(), h.engine, h.landings, &t)
	if err != nil {
		return err
	}
	return httpio.Answer(w, status, *view.Landing(&t, places[t.ID]))
}

// list is GET /api/landings.
func (h *landingHandlers) list(w http.ResponseWriter, r *http.Request) error {
	open, err := h.engine.Read().Landings(r.Context())
	if err != nil {
		return err
	}
	var places map[string]int
	if h.landings != nil {
		places = h.landings.Places(open)
	}
	out, who := api.Landings{Landings: []api.Landing{}}, access.CallerOf(r).Who
	for i := range open {
		if who.SeesTask(&open[i]) {
			out.Landings = append(out.Landings, *view.Landing(&open[i], places[open[i].ID]))
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// landingPlaces returns the places of landings if the task has a landing under way, or lands the
// work of another task.
func landingPlaces(ctx context.Context, e *engine.Engine, landings Landings, t *signalbox.Task) (map[string]int, error) {
	if landings == nil || !t.Landing.Active() && t.Mode != signalbox.ModeLand {
		return nil, nil
	}
	open, err := e.Read().Landings(ctx)
	return landings.Places(open), err
}
