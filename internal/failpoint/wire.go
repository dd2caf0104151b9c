package failpoint

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// errHere is the injected error.
var errHere = errors.New("failpoint: the connection was reset")

// Store adds points around the verbs of a store.
func (s *Set) Store(under store.Store) store.Store {
	return Wrap(under, func(ctx context.Context, verb string, do func(context.Context) error) error {
		if s.Hit("store."+verb+".before") == Fail {
			return signalbox.Errorf(signalbox.CodeStoreFailed, "failpoint: %s was not stored", verb)
		}
		err := do(ctx)
		s.Hit("store." + verb + ".after")
		return err
	}, nil)
}

// Transport adds points around the requests for which name does not return "".
func (s *Set) Transport(under http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	return &transport{under, s, name}
}

type transport struct {
	under http.RoundTripper
	set   *Set
	name  func(*http.Request) string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	name := t.name(r)
	if name == "" {
		return t.under.RoundTrip(r)
	}
	if t.set.Hit(name+".before") != "" {
		return nil, errHere
	}
	resp, err := t.under.RoundTrip(r)
	if t.set.Hit(name+".after") != "" && err == nil {
		_ = resp.Body.Close()
		return nil, errHere
	}
	return resp, err
}

// Over returns the same points over a changed transport.
func (t *transport) Over(change func(http.RoundTripper) http.RoundTripper) http.RoundTripper {
	return &transport{change(t.under), t.set, t.name}
}

// CloseIdleConnections calls that of the underlying transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.under.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// ToAgent names the requests of a director to an agent.
func ToAgent(r *http.Request) string { return named("agent.", asked(r.Method, r.URL.Path)) }

// ToDirector names the requests of an agent or a scheduler to a director.
func ToDirector(r *http.Request) string {
	route := routeOf(r.Method, r.URL.Path)
	for _, name := range Home {
		if name == route {
			return "home." + name
		}
	}
	return ""
}

// OfDirector names the answers of a director.
func OfDirector(method, path string) string {
	route := routeOf(method, path)
	for _, name := range Routes {
		if name == route {
			return "reply." + name
		}
	}
	return ""
}

// OfAgent names the answers of an agent.
func OfAgent(method, path string) string { return named("answer.", asked(method, path)) }

func named(prefix, name string) string {
	if name == "" {
		return ""
	}
	return prefix + name
}

// asked returns the kind of a request to an agent.
func asked(method, path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/task" && method == http.MethodPost:
		return "offer"
	case path == "/status", path == "/sessions":
		return parts[0]
	case parts[0] == "task" && len(parts) == 2:
		return "task"
	case parts[0] == "task" && len(parts) == 3:
		return parts[2]
	}
	return ""
}

// table matches the routes of the director.
var table = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range api.Routes() {
		mux.Handle(r.Method+" "+r.Path, route(r.Name))
	}
	return mux
}()

// route is a route of the table. It is only looked up and never served.
type route string

func (route) ServeHTTP(http.ResponseWriter, *http.Request) {}

func routeOf(method, path string) string {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://director"+path, nil) //nolint:gosec // it is looked up and never sent
	if err != nil {
		return ""
	}
	h, _ := table.Handler(r)
	name, _ := h.(route)
	return string(name)
}
