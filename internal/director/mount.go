package director

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// mount walks the route table: deny by default.
func (d *Director) mount() (*http.ServeMux, error) {
	endpoints := d.endpoints()
	if d.cfg.ToolsOnly {
		maps.DeleteFunc(endpoints, func(_ string, e endpoint) bool { return !e.gateway })
	}
	return d.mountRoutes(d.served(), endpoints)
}

func (d *Director) mountRoutes(routes []api.Route, endpoints map[string]endpoint) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	for _, route := range routes {
		e, ok := endpoints[route.Name]
		if !ok {
			return nil, fmt.Errorf("director: no handler for route %s (%s %s)", route.Name, route.Method, route.Path)
		}
		delete(endpoints, route.Name)
		mux.Handle(route.Method+" "+route.Path, d.guard(route, e))
	}
	if len(endpoints) > 0 {
		return nil, fmt.Errorf("director: handlers without a route: %s", strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
	}
	return mux, nil
}

// guard wraps a handler with what its route asks for: the caller's right and
// limits, no query parameter that the table does not name, JSON on writes.
func (d *Director) guard(route api.Route, e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteRoute(w, route.Name)
		c, err := d.gate.admit(r, route)
		r = traced(r.WithContext(withCaller(r.Context(), c)))
		if err == nil {
			err = d.pass(w, r, route, e)
		}
		if err == nil {
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeForbidden {
			d.auditDenied(r, route.Name)
		}
		d.answerError(w, r, discreet(err, r, c))
	})
}

// pass hands a request of a caller with the right to the handler.
func (d *Director) pass(w http.ResponseWriter, r *http.Request, route api.Route, e endpoint) error {
	c := callerOf(r)
	if err := checkQuery(r, route); err != nil {
		return err
	}
	if err := checkMedia(r); err != nil {
		return err
	}
	if route.Scope != api.ScopePublic && route.Scope != api.ScopeTicket && !d.cfg.ToolsOnly { // there nobody was asked who they are, or could prove to be an agent
		if _, err := callOf(r); err != nil {
			return err
		}
	}
	if err := d.findImported(r, route); err != nil {
		return err
	}
	if err := d.narrow(r, route, e.narrow, c); err != nil {
		return err
	}
	if route.Request == nil && hasBody(r) && isWrite(r) && route.Path != mcpPath {
		if err := decode(w, r, &struct{}{}, true); err != nil {
			return err
		}
	}
	during, done := d.whileAllowed(r, e, c)
	defer done()
	err := e.handle(w, during)
	if during.Context().Err() != nil && r.Context().Err() == nil && !hasAnswered(w) {
		return signalbox.Errorf(signalbox.CodeUnauthorized, "what was shown is no longer in force")
	}
	return err
}

// hasAnswered reports whether there is an answer already.
func hasAnswered(w http.ResponseWriter) bool {
	rec, ok := w.(*recorder)
	return ok && rec.status != 0
}

// unmatched answers what no route matches, in JSON: 405 where the path
// exists for another method, else 404.
func (d *Director) unmatched(w http.ResponseWriter, r *http.Request, fallback http.Handler) {
	c := captured{header: http.Header{}}
	fallback.ServeHTTP(&c, r)
	if allow := c.header.Get("Allow"); c.status == http.StatusMethodNotAllowed && allow != "" {
		w.Header().Set("Allow", allow)
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeMethodNotAllowed, "%s is not possible on %s: use %s", clip(r.Method), clip(r.URL.Path), allow))
		return
	}
	what := "there is nothing at %s"
	if d.cfg.ToolsOnly {
		what = "there is nothing at %s: this is a gateway alone, which has tools and no queue of tasks; signalbox up or signalbox director has both"
	}
	d.answerError(w, r, refuse(signalbox.CodeNotFound, "GET /openapi.json lists all paths", what, clip(r.URL.Path)))
}

// captured takes the answer of the mux for itself.
type captured struct {
	header http.Header
	status int
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) Write(b []byte) (int, error) { return len(b), nil }
func (c *captured) WriteHeader(status int)      { c.status = status }
