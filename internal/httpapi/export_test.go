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

// What tests need to see of the inside.

const (
	MaxHeader     = maxHeaderBytes
	HeaderTimeout = readHeaderTimeout
	BodyTimeout   = httpio.BodyTimeout
	WriteTimeout  = httpio.WriteTimeout
	Heartbeat     = httpio.KeepAliveEvery
	MaxStreams    = httpio.MaxStreams
	CancelWait    = cancelWait
)

// SetLookup makes hosts resolve as a test wants.
func (d *Server) SetLookup(f func(ctx context.Context, host string) ([]netip.Addr, error)) {
	d.handlers.agents.lookup = f
}

// AddStream takes one of the places for open streams.
func (d *Server) AddStream() { _, _ = d.streams.Reserve() }

// MountRoutes mounts another table; handlers named in drop are left out.
func (d *Server) MountRoutes(routes []api.Route, drop ...string) (*http.ServeMux, error) {
	endpoints := d.handlers.endpoints()
	for _, name := range drop {
		delete(endpoints, name)
	}
	return d.mountRoutes(routes, endpoints)
}

// HasStatus reports whether a code has a status.
func HasStatus(code signalbox.Code) bool { _, ok := httpio.Statuses[code]; return ok }

// Decode reads a body that has arrived.
func Decode(data []byte, into any) error {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(data))
	return httpio.Decode(httptest.NewRecorder(), r, into, false)
}

// HandlerAs serves the whole API to a principal, without asking for its token.
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

// Narrowed reports whether it is said how a route is narrowed for a caller
// that is limited to some agents.
func Narrowed(route string) bool {
	return new(handlers).endpoints()[route].narrow != access.Closed
}
