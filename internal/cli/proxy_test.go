package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// proxy stands in front of a director.
type proxy struct {
	*httptest.Server
	routes *http.ServeMux
	seen   func(route string, r *http.Request, written []byte) // called with what was written, before it is sent

	mu       sync.Mutex
	handler  http.Handler
	answers  map[string]http.HandlerFunc // by route, instead of the director's
	lose     map[string]int              // by route: how many more replies get lost
	sent     []request
	watched  map[string]bool // ids whose events a client has subscribed to
	end      func()          // ends the newest cancel, which waits 5 s for the agent's reply, or live stream
	pageSize string          // page size of the audit log and of schedules
}

// request is a request as it arrived.
type request struct {
	route  string
	path   string
	header http.Header
	body   string
}

func newProxy() *proxy {
	p := &proxy{routes: http.NewServeMux(), answers: map[string]http.HandlerFunc{}, lose: map[string]int{}, watched: map[string]bool{}, end: func() {}}
	for _, route := range api.Routes() {
		p.routes.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) { p.forward(w, r, route.Name) })
	}
	return p
}

func (p *proxy) start(t testing.TB) {
	p.Server = httptest.NewServer(p.routes)
	t.Cleanup(p.stop)
}

// startAt listens again at the previous address.
func (p *proxy) startAt(t testing.TB, addr string) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewUnstartedServer(p.routes)
	p.Listener.Close()
	p.Listener = l
	p.Server.Start()
	t.Cleanup(p.stop)
}

// stop closes the listener and all connections, and waits for their handlers.
func (p *proxy) stop() {
	p.Listener.Close() // first, so that a client whose connection is closed cannot reconnect
	closed := make(chan struct{})
	go func() {
		p.Server.Close()
		close(closed)
	}()
	for {
		p.CloseClientConnections() // streams and long polls do not end by themselves
		select {
		case <-closed:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *proxy) serve(h http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = h
}

// answer has the proxy answer a route instead of the director; nil ends that.
func (p *proxy) answer(route string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[route] = h
}

// refuse has the proxy refuse a route.
func (p *proxy) refuse(route string, status int, e api.Error) {
	p.answer(route, func(w http.ResponseWriter, r *http.Request) { answerJSON(w, status, e) })
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// requests are the requests of a route, in order.
func (p *proxy) requests(route string) (list []request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.sent {
		if r.route == route {
			list = append(list, r)
		}
	}
	return list
}

// subscribed records that a client has subscribed to the events of a task.
func (p *proxy) subscribed(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched[id] = true
}

// once reports, the first time only, that a client has subscribed to the events of a task.
func (p *proxy) once(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.watched[id]
	delete(p.watched, id)
	return was
}

// endNewest ends the newest cancel or live stream.
func (p *proxy) endNewest() {
	p.mu.Lock()
	end := p.end
	p.mu.Unlock()
	end()
}

func (p *proxy) forward(w http.ResponseWriter, r *http.Request, route string) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.mu.Lock()
	p.sent = append(p.sent, request{route, r.URL.Path, r.Header, string(body)})
	h, answer, pageSize, lost := p.handler, p.answers[route], p.pageSize, p.lose[route] > 0
	if lost {
		p.lose[route]--
	}
	if route == "cancel" || route == "live" {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r, p.end = r.WithContext(ctx), cancel
	}
	p.mu.Unlock()
	if pageSize != "" && (route == "audit" || route == "schedules") {
		q := r.URL.Query()
		q.Set("limit", pageSize)
		r.URL.RawQuery = q.Encode()
	}
	switch {
	case answer != nil:
		answer(w, r)
	case lost:
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case route == "terminal":
		h.ServeHTTP(w, r)
	default:
		if route == "toolTask" && r.URL.Query().Get("wait") != "" {
			p.seen("wait", r, nil)
		}
		h.ServeHTTP(&tap{w, func(b []byte) { p.seen(route, r, b) }}, r)
	}
}

// tap copies what is written to a response.
type tap struct {
	http.ResponseWriter
	saw func([]byte)
}

func (t *tap) Write(b []byte) (int, error) {
	t.saw(b)
	return t.ResponseWriter.Write(b)
}

func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }
