package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/live"
	"github.com/signalbox-ai/signalbox/internal/httpapi/schedules"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// statusHandlers report the state of the director.
type statusHandlers struct {
	engine     *engine.Engine
	identity   *identity.Keeper
	projection *live.Projection
	schedules  *schedules.Handlers
	peers      forward.Peers // nil: this is the only director
	scrape     http.Handler
	openapi    func() ([]byte, error)
	draining   *atomic.Bool
	version    string
	started    time.Time
	log        *slog.Logger
}

// status is GET /status.
func (h *statusHandlers) status(w http.ResponseWriter, r *http.Request) error {
	counts, err := h.engine.Read().Counts(r.Context())
	if err != nil {
		return err
	}
	now, info, live := h.engine.Now(), h.engine.Info(), h.engine.LiveAgents()
	out := api.Status{
		Type: "view", Interfaces: []string{"statusable", "observable", "taskable"}, Version: h.version,
		State: "running", UptimeSeconds: max(0, now.Sub(h.started).Seconds()),
		Queue:  view.QueueStatus(counts, h.engine.Options().MaxSize, now),
		Agents: agentCounts(withoutExecutors(live)),
		Store:  api.StoreStatus{Kind: info.Kind, Durability: info.Durability},
		Open:   h.identity.Open(),
		Health: h.projection.Health(r.Context(), access.CallerOf(r).Who),
	}
	if out.Tools, err = toolTaskCounts(r.Context(), h.engine, h.peers, counts, live); err != nil {
		return err
	}
	if out.Scheduler, err = h.schedules.Counts(r.Context()); err != nil {
		return err
	}
	if out.Scheduler != nil {
		out.Scheduler.Failing += h.projection.FailingSchedules()
	}
	if h.draining.Load() {
		out.State = "draining"
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func agentCounts(live []engine.LiveAgent) api.AgentCounts {
	var c api.AgentCounts
	for _, a := range live {
		c.Total++
		if !a.Up {
			continue
		}
		c.Up++
		switch {
		case a.InUse > 0:
			c.Working++
		case !a.Held:
			c.Idle++
		}
	}
	return c
}

// describe is GET /openapi.json.
func (h *statusHandlers) describe(w http.ResponseWriter, _ *http.Request) error {
	page, err := h.openapi()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	httpio.ExtendWriteDeadline(w)
	w.Write(page)
	return nil
}

// healthz is GET /healthz: it shows that the process answers. It does not check the store,
// so that a full disk does not get the process killed.
func (h *statusHandlers) healthz(w http.ResponseWriter, _ *http.Request) error {
	return httpio.Answer(w, http.StatusOK, api.Health{Status: "ok"})
}

// storeTimeout is how long readyz waits for the store.
const storeTimeout = 2 * time.Second

// readyz is GET /readyz.
func (h *statusHandlers) readyz(w http.ResponseWriter, r *http.Request) error {
	if h.draining.Load() {
		return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "draining: the director is about to stop and makes no new claims; submits are stored"), RetryAfter: 5}
	}
	if p := h.peers; p != nil {
		if self := p.Self(); !self.Alive(h.engine.Now()) {
			return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "the lease of this director (%s) has expired: it has not reached the store, and dispatches nothing until it does", self.ID), RetryAfter: 2}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	if _, err := h.engine.Read().Counts(ctx); err != nil {
		h.log.Error("store does not answer", "error", err)
		return &httpio.Refusal{Err: &signalbox.Error{Code: signalbox.CodeUnavailable, Message: "the store does not answer", Err: err}, RetryAfter: 5}
	}
	return httpio.Answer(w, http.StatusOK, api.Health{Status: "ok"})
}

// metrics is GET /metrics.
func (h *statusHandlers) metrics(w http.ResponseWriter, r *http.Request) error {
	httpio.ExtendWriteDeadline(w)
	h.scrape.ServeHTTP(w, r)
	return nil
}

// live is GET /api/live.
func (h *statusHandlers) live(w http.ResponseWriter, r *http.Request) error {
	return h.projection.Serve(w, r, access.CallerOf(r).Who)
}
