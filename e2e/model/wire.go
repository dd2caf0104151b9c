package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// format is one wire format.
type format interface {
	// parse fills Model, Tools and Text, and reports whether to stream.
	parse(body []byte, r *Request) (stream bool, err error)
	stream(w *sse, r Request, p Reply)
	whole(r Request, p Reply) any
	failure(status int, message string) any
}

// sse writes a stream of events.
type sse struct {
	w        http.ResponseWriter
	req, srv context.Context
}

func (s *sse) begin() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(s.w).Flush()
}

// event sends one event; without a name only its data.
func (s *sse) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // the data is from this package
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	_ = http.NewResponseController(s.w).Flush()
}

// say streams the text of a reply with send. It reports false if the stream
// must not continue.
func (s *sse) say(p Reply, send func(part string)) bool {
	for i, part := range p.parts() {
		if p.Hang && i > 0 {
			break
		}
		if p.Pause > 0 {
			t := time.NewTimer(p.Pause)
			select {
			case <-t.C:
			case <-s.req.Done():
				t.Stop()
				return false
			case <-s.srv.Done():
				t.Stop()
				return false
			}
		}
		send(part)
	}
	if p.Hang {
		select {
		case <-s.req.Done():
		case <-s.srv.Done():
		}
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func countTokens(w http.ResponseWriter, req *http.Request) {
	n, _ := io.Copy(io.Discard, http.MaxBytesReader(w, req.Body, 32<<20))
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": n / 4})
}

func listModels(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": "scripted", "object": "model", "owned_by": "test"}}})
}
