package httpapi

import (
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gates"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

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
