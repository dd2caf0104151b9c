package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// status is GET /status.
func (d *Server) status(w http.ResponseWriter, r *http.Request) error {
	counts, err := d.engine.Read().Counts(r.Context())
	if err != nil {
		return err
	}
	now, info, live := d.engine.Now(), d.engine.Info(), d.engine.LiveAgents()
	out := api.Status{
		Type: "view", Interfaces: []string{"statusable", "observable", "taskable"}, Version: d.cfg.Version,
		State: "running", UptimeSeconds: max(0, now.Sub(d.started).Seconds()),
		Queue:  view.QueueStatus(counts, d.engine.Options().MaxSize, now),
		Agents: agentCounts(withoutExecutors(live)),
		Store:  api.StoreStatus{Kind: info.Kind, Durability: info.Durability},
		Open:   d.identity.Open(),
		Health: d.projection.Health(r.Context(), callerOf(r).who),
	}
	if out.Tools, err = d.toolTaskCounts(r.Context(), counts, live); err != nil {
		return err
	}
	if out.Scheduler, err = d.schedulerCounts(r.Context()); err != nil {
		return err
	}
	if d.draining.Load() {
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
func (d *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	page, err := d.openapi()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	httpio.ExtendWriteDeadline(w)
	w.Write(page)
	return nil
}

// healthz is GET /healthz: it says that the process answers, and nothing of
// the store, so that a full disk does not get the process killed.
func (d *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	return httpio.Answer(w, http.StatusOK, api.Health{Status: "ok"})
}

// storeTimeout is how long readyz waits for the store.
const storeTimeout = 2 * time.Second

// readyz is GET /readyz.
func (d *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if d.draining.Load() {
		return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "draining: the director is about to stop and makes no new claims; submits are stored"), RetryAfter: 5}
	}
	if p := d.cfg.Peers; p != nil {
		if self := p.Self(); !self.Alive(d.engine.Now()) {
			return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "the lease of this director (%s) is over: it has not reached the store, and dispatches nothing until it does", self.ID), RetryAfter: 2}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	if _, err := d.engine.Read().Counts(ctx); err != nil {
		d.log.Error("store does not answer", "error", err)
		return &httpio.Refusal{Err: &signalbox.Error{Code: signalbox.CodeUnavailable, Message: "the store does not answer", Err: err}, RetryAfter: 5}
	}
	return httpio.Answer(w, http.StatusOK, api.Health{Status: "ok"})
}

// metrics is GET /metrics.
func (d *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	httpio.ExtendWriteDeadline(w)
	d.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// live is GET /api/live.
func (d *Server) live(w http.ResponseWriter, r *http.Request) error {
	return d.projection.Serve(w, r, callerOf(r).who)
}
