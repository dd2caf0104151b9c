package httpapi

import (
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/terminal"
)

// terminalHandlers open terminals of agents, here or at the director that holds the agent.
type terminalHandlers struct {
	engine    *engine.Engine
	terminals *terminal.Terminals
	forward   *forward.Forwarder
}

// openTerminal is POST /api/agents/{name}/terminal: it returns a ticket that opens one
// terminal. Without tickets a browser would have to put a token in the address of the
// WebSocket.
func (h *terminalHandlers) openTerminal(w http.ResponseWriter, r *http.Request) error {
	row, err := agentRow(r.Context(), h.engine, r.PathValue("name"))
	if err != nil {
		return err
	}
	if err := h.terminals.Enabled(); err != nil {
		return err
	}
	if holder, elsewhere := h.forward.RemoteHolder(r.Context(), row.Name); elsewhere { // that director knows the open terminals
		return h.forward.Proxy(w, forward.WithoutBody(r), holder, "agent "+row.Name)
	}
	ticket, err := h.terminals.Ticket(access.CallerOf(r).Who, row)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusCreated, ticket)
}

// terminal is GET /api/agents/{name}/terminal, the WebSocket. checkOrigin has already
// refused pages of other sites.
func (h *terminalHandlers) terminal(w http.ResponseWriter, r *http.Request) error {
	if err := h.terminals.Enabled(); err != nil {
		return err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return signalbox.Invalid("Upgrade", "a terminal is a WebSocket: send Connection: Upgrade and Upgrade: websocket")
	}
	if holder, elsewhere := h.forward.RemoteHolder(r.Context(), r.PathValue("name")); elsewhere { // that director issued the ticket
		return h.forward.Proxy(w, r, holder, "agent "+httpio.Clip(r.PathValue("name")))
	}
	h.terminals.Serve(w, r)
	return nil
}
