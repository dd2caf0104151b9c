package director

import (
	"bytes"
	"io"
	"net/http"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// mcpPath is that of the MCP server, whose bodies have rules of their own.
const mcpPath = "/mcp"

// maxMCPBytes bounds a message to the MCP server, and a call of a tool over HTTP:
// arguments may hold whole files.
const maxMCPBytes = 4 << 20

// mcp is all methods of /mcp. The gate has been passed; from here the protocol
// has its own rules and its own errors.
func (d *Director) mcp(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.MCP == nil {
		return errNoTools()
	}
	if r.Method == http.MethodGet { // it stays open for as long as the client likes
		leave, err := d.reserveStream()
		if err != nil {
			return err
		}
		defer leave()
	}
	if d.cfg.Peers != nil {
		other, name, elsewhere := d.sessionAt(r.Context(), r.Header.Get(mcpSessionHeader))
		if elsewhere {
			return d.passOn(w, r, other, "this MCP session")
		}
		if name != "" {
			r.Header.Set(mcpSessionHeader, name)
		}
		w = &sessionMarker{ResponseWriter: w, mark: markOf(d.cfg.Peers.Self().ID)}
	}
	who, err := d.toolCaller(r, "")
	if err != nil {
		return err
	}
	if hasBody(r) {
		// The SDK would read it under the deadline for bodies and leave that in
		// force, which would end the call when it is over.
		body, err := readBody(w, r, maxMCPBytes)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := d.untilStopped(d.within(withAsker(r), who))
	defer cancel()
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	d.cfg.MCP.ServeHTTP(w, r.WithContext(gateway.WithCaller(ctx, who)))
	return nil
}
