package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Internals for tests.

const (
	MaxHeader     = maxHeaderBytes
	HeaderTimeout = readHeaderTimeout
	BodyTimeout   = httpio.BodyTimeout
	WriteTimeout  = httpio.WriteTimeout
	Heartbeat     = httpio.KeepAliveEvery
	MaxStreams    = httpio.MaxStreams
	CancelWait    = cancelWait
)

// SetLookup replaces the DNS lookup.
func (d *Server) SetLookup(f func(ctx context.Context, host string) ([]netip.Addr, error)) {
	d.handlers.agents.lookup = f
}

// AddStream takes one of the places for open streams.
func (d *Server) AddStream() { _, _ = d.streams.Reserve() }

// MountRoutes mounts another table, without the handlers named in drop.
func (d *Server) MountRoutes(routes []api.Route, drop ...string) (*http.ServeMux, error) {
	endpoints := d.handlers.endpoints()
	for _, name := range drop {
		delete(endpoints, name)
	}
	return d.mountRoutes(routes, endpoints)
}

// HasStatus reports whether a code has a status.
func HasStatus(code signalbox.Code) bool { _, ok := httpio.Statuses[code]; return ok }

// Decode decodes a body.
func Decode(data []byte, into any) error {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(data))
	return httpio.Decode(httptest.NewRecorder(), r, into, false)
}

// HandlerAs serves the whole API to a principal, without a token.
func (d *Server) HandlerAs(who signalbox.Principal) http.Handler {
	mux := http.NewServeMux()
	endpoints := d.handlers.endpoints()
	for _, route := range api.Routes() {
		h := endpoints[route.Name].handle
		if h == nil {
			continue
		}
		mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r.WithContext(access.WithCaller(r.Context(), access.Caller{Who: who, Trusted: true}))); err != nil {
				d.answerError(w, r, err)
			}
		})
	}
	return mux
}

// Narrowed reports whether a route has a narrowing for callers that are limited to some
// agents.
func Narrowed(route string) bool {
	return new(handlers).endpoints()[route].narrow != access.Closed
}
