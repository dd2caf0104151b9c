package httpapi

import (
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// openTerminal is POST /api/agents/{name}/terminal: a ticket, which opens one
// terminal. So no token stands in the address of a WebSocket, where a browser
// would have to put it.
func (d *Server) openTerminal(w http.ResponseWriter, r *http.Request) error {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	if err := d.terminals.Enabled(); err != nil {
		return err
	}
	if holder, elsewhere := d.otherHolder(r.Context(), row.Name); elsewhere { // there it is known who has which terminal
		return d.passOn(w, withoutBody(r), holder, "agent "+row.Name)
	}
	ticket, err := d.terminals.Ticket(access.CallerOf(r).Who, row)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusCreated, ticket)
}

// terminal is GET /api/agents/{name}/terminal, the WebSocket. A page of another
// site was refused already (checkOrigin).
func (d *Server) terminal(w http.ResponseWriter, r *http.Request) error {
	if err := d.terminals.Enabled(); err != nil {
		return err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return signalbox.Invalid("Upgrade", "a terminal is a WebSocket: ask for it with Connection: Upgrade and Upgrade: websocket")
	}
	if holder, elsewhere := d.otherHolder(r.Context(), r.PathValue("name")); elsewhere { // its ticket is from there
		return d.passOn(w, r, holder, "agent "+httpio.Clip(r.PathValue("name")))
	}
	d.terminals.Serve(w, r)
	return nil
}
