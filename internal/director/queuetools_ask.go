package director

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// asking is one call of a tool of the queue.
type asking struct {
	d    *Director
	from *http.Request // in which the tool is called
	call gateway.Call
}

// who calls, as the gate found out.
func (a *asking) who() signalbox.Principal { return callerOf(a.from).who }

// read puts the arguments into the struct that into points to, as strictly as
// a body is read.
func (a *asking) read(into any) error {
	if len(a.call.Arguments) == 0 {
		return nil
	}
	tree, err := parse(a.call.Arguments)
	if err != nil {
		return err
	}
	return bind(reflect.ValueOf(into).Elem(), tree, "")
}

// question is a request to the director itself.
type question struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         any
}

// asCaller are the headers that say who asks, from where, and in which
// execution.
var asCaller = []string{
	"Authorization", "Cookie", sourceAgentHeader, executionHeader, "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode",
	"Forwarded", "X-Forwarded-For", "X-Real-Ip", "User-Agent", requestIDHeader,
}

// request makes a request of the caller's own.
func (a *asking) request(ctx context.Context, q question) (*http.Request, error) {
	var body io.Reader
	if q.body != nil {
		data, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	at := url.URL{Scheme: "http", Host: "director", Path: q.path, RawQuery: q.query.Encode()}
	r, err := http.NewRequestWithContext(ctx, q.method, at.String(), body)
	if err != nil {
		return nil, err
	}
	r.Host, r.RemoteAddr, r.RequestURI, r.TLS = a.from.Host, a.from.RemoteAddr, r.URL.RequestURI(), a.from.TLS
	for _, name := range asCaller {
		if values := a.from.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	for name, value := range q.header {
		r.Header[name] = []string{value}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// ask sends a question on the way that all requests go, and puts the answer
// into what into points to. Every answer but a success is an error.
func (a *asking) ask(ctx context.Context, q question, into any) error {
	w, err := a.send(ctx, q, nil)
	if err != nil {
		return err
	}
	if w.status < 200 || w.status > 299 {
		return refusalOf(w)
	}
	return json.Unmarshal(w.body, into)
}

// send is ask for who wants the answer itself. event takes the events of one
// that is a stream of them.
func (a *asking) send(ctx context.Context, q question, event func(name string, data []byte)) (*answerWriter, error) {
	r, err := a.request(ctx, q)
	if err != nil {
		return nil, err
	}
	w := &answerWriter{header: http.Header{}, event: event}
	a.d.handler.ServeHTTP(w, r)
	if w.status == 0 { // nothing is answered to who has gone
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.status = http.StatusOK
	}
	return w, nil
}

// answerWriter takes an answer of the director.
type answerWriter struct {
	header http.Header
	status int
	body   []byte // of a stream: what has come of the next event
	event  func(name string, data []byte)
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answerWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, b...)
	if w.streams() {
		w.tell()
	}
	return len(b), nil
}

// Flush is there because streams are flushed.
func (w *answerWriter) Flush() {}

func (w *answerWriter) streams() bool {
	return w.event != nil && strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream")
}

// tell hands on the events that have come whole; a comment has neither name
// nor data.
func (w *answerWriter) tell() {
	for {
		text, rest, whole := bytes.Cut(w.body, []byte("\n\n"))
		if !whole {
			return
		}
		w.body = rest
		name, data := "", []byte(nil)
		for line := range bytes.Lines(text) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if v, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
				name = string(v)
			} else if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = v
			}
		}
		w.event(name, data)
	}
}
