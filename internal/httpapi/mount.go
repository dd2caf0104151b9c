package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// mount mounts the route table: everything else is denied.
func (d *Server) mount() (*http.ServeMux, error) {
	endpoints := d.handlers.endpoints()
	if d.cfg.ToolsOnly {
		maps.DeleteFunc(endpoints, func(_ string, e endpoint) bool { return !e.gateway })
	}
	return d.mountRoutes(d.served(), endpoints)
}

func (d *Server) mountRoutes(routes []api.Route, endpoints map[string]endpoint) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	for _, route := range routes {
		e, ok := endpoints[route.Name]
		if !ok {
			return nil, fmt.Errorf("httpapi: no handler for route %s (%s %s)", route.Name, route.Method, route.Path)
		}
		delete(endpoints, route.Name)
		mux.Handle(route.Method+" "+route.Path, d.guard(route, e))
	}
	if len(endpoints) > 0 {
		return nil, fmt.Errorf("httpapi: handlers without a route: %s", strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
	}
	return mux, nil
}

// guard wraps a handler with the checks of its route: the caller's scope and limits, known
// query parameters, JSON on writes.
func (d *Server) guard(route api.Route, e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpio.NoteRoute(w, route.Name)
		c, err := d.gate.Admit(r, route)
		r = traced(r.WithContext(access.WithCaller(r.Context(), c)))
		if err == nil {
			err = d.pass(w, r, route, e)
		}
		if err == nil {
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeForbidden {
			d.audit.WriteDenied(r, route.Name)
		}
		d.answerError(w, r, access.HideAgentNames(err, r, c))
	})
}

// pass calls the handler for a caller that was admitted.
func (d *Server) pass(w http.ResponseWriter, r *http.Request, route api.Route, e endpoint) error {
	c := access.CallerOf(r)
	if err := httpio.CheckQuery(r, route); err != nil {
		return err
	}
	if err := httpio.CheckMedia(r); err != nil {
		return err
	}
	if route.Scope != api.ScopePublic && route.Scope != api.ScopeTicket && !d.cfg.ToolsOnly { // those callers are not authenticated, or cannot be agents
		if _, err := access.ExecutionOf(r); err != nil {
			return err
		}
	}
	if err := access.ResolveImported(d.engine, r, route); err != nil {
		return err
	}
	if err := d.gate.Narrow(r, route, e.narrow, c); err != nil {
		return err
	}
	if route.Request == nil && httpio.HasBody(r) && httpio.IsWrite(r) && route.Path != mcpPath {
		if err := httpio.Decode(w, r, &struct{}{}, true); err != nil {
			return err
		}
	}
	during := r
	if e.lasting {
		var done func()
		during, done = d.gate.WhileAllowed(r, c)
		defer done()
	}
	err := e.handle(w, during)
	if during.Context().Err() != nil && r.Context().Err() == nil && !httpio.HasAnswered(w) {
		return signalbox.Errorf(signalbox.CodeUnauthorized, "the token or login is no longer valid")
	}
	return err
}

// unmatched answers requests without a route, in JSON: 405 if the path exists for another
// method, else 404.
func (d *Server) unmatched(w http.ResponseWriter, r *http.Request, allow string) {
	if allow != "" {
		w.Header().Set("Allow", allow)
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeMethodNotAllowed, "%s is not possible on %s: use %s", httpio.Clip(r.Method), httpio.Clip(r.URL.Path), allow))
		return
	}
	what := "there is nothing at %s"
	if d.cfg.ToolsOnly {
		what = "there is nothing at %s: this is a standalone gateway, which has tools but no task queue; signalbox up or signalbox director has both"
	}
	d.answerError(w, r, httpio.Refuse(signalbox.CodeNotFound, "GET /openapi.json lists all paths", what, httpio.Clip(r.URL.Path)))
}

// served lists the routes of this director: all, or those of a standalone gateway.
func (d *Server) served() []api.Route {
	routes := api.Routes()
	if !d.cfg.ToolsOnly {
		return routes
	}
	endpoints := d.handlers.endpoints()
	return slices.DeleteFunc(routes, func(r api.Route) bool { return !endpoints[r.Name].gateway })
}

// pagesRoot is the root path of the pages.
const pagesRoot = "/ui/"

// pageHandlers serve the dashboard.
type pageHandlers struct{ pages http.Handler }

// home is GET /: it redirects to the pages.
func (h *pageHandlers) home(w http.ResponseWriter, r *http.Request) error {
	if h.pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	http.Redirect(w, r, pagesRoot, http.StatusSeeOther)
	return nil
}

// page is GET /ui/…: the pages and their assets.
func (h *pageHandlers) page(w http.ResponseWriter, r *http.Request) error {
	if h.pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	httpio.ExtendWriteDeadline(w)
	h.pages.ServeHTTP(w, r)
	return nil
}
