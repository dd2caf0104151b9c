package director

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// mcpSessionHeader names an MCP session of the older protocol, which lives in
// the director where it began. Behind a balancer its requests come to any of
// them: the name that a client is given ends with a mark of that director, to
// which the others pass them on. A session whose director has gone is known to
// nobody: its client is told 404, as the protocol wants, and begins anew.
const mcpSessionHeader = "Mcp-Session-Id"

// markOf is the mark of a director in the names of its sessions.
func markOf(director string) string {
	sum := sha256.Sum256([]byte(director))
	return hex.EncodeToString(sum[:6])
}

// sessionAt is where the MCP session of a request lives, and the name that it
// has there.
func (d *Director) sessionAt(ctx context.Context, name string) (other store.Director, own string, elsewhere bool) {
	if d.cfg.Peers == nil {
		return other, name, false
	}
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return other, name, false
	}
	own, mark := name[:at], name[at+1:]
	if mark == markOf(d.cfg.Peers.Self().ID) {
		return other, own, false
	}
	for _, other := range d.others(ctx) {
		if mark == markOf(other.ID) && other.URL != "" {
			return other, name, true
		}
	}
	return other, name, false
}

// sessionMarker marks the name of a session that an answer gives to a client.
type sessionMarker struct {
	http.ResponseWriter
	mark string
	done bool
}

func (w *sessionMarker) begin() {
	if w.done {
		return
	}
	w.done = true
	if name := w.Header().Get(mcpSessionHeader); name != "" {
		w.Header().Set(mcpSessionHeader, name+"."+w.mark)
	}
}

func (w *sessionMarker) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionMarker) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// FlushError is there because a flush may begin the answer.
func (w *sessionMarker) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *sessionMarker) Unwrap() http.ResponseWriter { return w.ResponseWriter }
