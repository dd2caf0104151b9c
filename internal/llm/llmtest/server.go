package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/anthropic"
	"github.com/signalbox-ai/signalbox/internal/llm/openai"
)

// Vendor is a protocol.
type Vendor string

// The vendors.
const (
	OpenAI    Vendor = "openai"
	Anthropic Vendor = "anthropic"
)

// Vendors are all of them.
var Vendors = []Vendor{OpenAI, Anthropic}

// Key is the API key that the server's Model sends.
const Key = "sk-test-0123456789"

// Usage of each turn.
const (
	InputTokens  = 11
	OutputTokens = 7
)

// Request is a request, independent of the vendor.
type Request struct {
	Turn       int // from 1
	Model      string
	System     string
	Messages   []llm.Message
	Tools      []llm.Tool
	ToolChoice string // "none" or ""
	MaxTokens  int
	Body       []byte
	Header     http.Header
}

// Reply is the model's answer.
type Reply struct {
	Text  string
	Calls []llm.ToolCall
	Chunk int    // bytes per part of text or arguments; 0: one part
	Stop  string // the vendor's value; "": the matching one
	Mixed bool   // parts of several calls alternate

	Status int    // of an error; 0: none
	Body   string // of an error; "": the vendor's form, with Text as its message
	Header http.Header

	Break bool          // the connection breaks after text and calls
	Hang  chan struct{} // nothing follows text and calls; closed when the client has processed those
	Raw   string        // sent unchanged, instead of everything else
}

// Server is the endpoint.
type Server struct {
	URL    string
	Vendor Vendor
	t      testing.TB
	answer func(Request) Reply
	client *http.Client

	mu       sync.Mutex
	requests []Request
	hang     chan struct{}
}

// New starts a server that answers each turn with answer.
func New(t testing.TB, v Vendor, answer func(Request) Reply) *Server {
	t.Helper()
	s := &Server{Vendor: v, t: t, answer: answer}
	h := httptest.NewServer(s)
	s.client = h.Client()
	s.client.Transport = watch{s.client.Transport.(*http.Transport), s}
	t.Cleanup(h.Close)
	s.URL = h.URL
	if v == OpenAI {
		s.URL += "/v1"
	}
	return s
}

// Script answers one turn after the other, and repeats the last answer.
func Script(replies ...Reply) func(Request) Reply {
	return func(r Request) Reply { return replies[min(r.Turn, len(replies))-1] }
}

// Model is the model behind the server. It does not retry.
func (s *Server) Model() llm.Model { return s.Patient(-1) }

// Patient is the model behind the server, with this many retries.
func (s *Server) Patient(retries int) llm.Model {
	var m llm.Model
	var err error
	if s.Vendor == OpenAI {
		m, err = openai.New(openai.Options{BaseURL: s.URL, APIKey: Key, Client: s.client, Retries: retries})
	} else {
		m, err = anthropic.New(anthropic.Options{BaseURL: s.URL, APIKey: Key, Client: s.client, Retries: retries})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Last returns the newest request.
func (s *Server) Last() Request {
	all := s.Requests()
	if len(all) == 0 {
		s.t.Fatal("the model was not asked")
	}
	return all[len(all)-1]
}

func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the client has disconnected
	}
	path, key := "/v1/chat/completions", q.Header.Get("Authorization") == "Bearer "+Key
	parse, stream, refusal := parseChat, (*out).chat, chatRefusal
	if s.Vendor == Anthropic {
		path, key = "/v1/messages", q.Header.Get("X-Api-Key") == Key
		parse, stream, refusal = parseMessages, (*out).messages, messagesRefusal
	}
	if q.URL.Path != path || !key {
		s.t.Errorf("%s %s with key %t: expected %s with the key", q.Method, q.URL.Path, key, path)
	}
	r, err := parse(body)
	r.Body, r.Header = body, q.Header
	s.mu.Lock()
	r.Turn = len(s.requests) + 1
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if err != nil {
		s.t.Errorf("%s would refuse this conversation: %v\n%s", s.Vendor, err, body)
		send(w, Reply{Status: 400, Text: err.Error()}, refusal)
		return
	}
	reply := s.answer(r)
	switch {
	case reply.Status != 0:
		send(w, reply, refusal)
	case reply.Raw != "":
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, reply.Raw)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		o := &out{w: w, rc: http.NewResponseController(w), reply: reply, turn: r.Turn}
		if stream(o, r) {
			return
		}
		if reply.Hang != nil {
			s.mu.Lock()
			s.hang = reply.Hang
			s.mu.Unlock()
			io.WriteString(w, hanging)
			_ = o.rc.Flush()
			<-q.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
}

func send(w http.ResponseWriter, r Reply, form func(int, string) any) {
	maps.Copy(w.Header(), r.Header)
	if r.Body == "" {
		b, _ := json.Marshal(form(r.Status, r.Text))
		r.Body = string(b)
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(r.Status)
	io.WriteString(w, r.Body)
}

// out writes events.
type out struct {
	w     io.Writer
	rc    *http.ResponseController
	reply Reply
	turn  int
}

func (o *out) event(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(o.w, "event: %s\n", name)
	}
	fmt.Fprintf(o.w, "data: %s\n\n", b)
	_ = o.rc.Flush()
}

// parts cuts s between characters.
func (o *out) parts(s string) []string {
	if o.reply.Chunk == 0 || s == "" {
		return []string{s}
	}
	var all []string
	for s != "" {
		n := min(o.reply.Chunk, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		all, s = append(all, s[:n]), s[n:]
	}
	return all
}

// each passes on the parts of all calls, one call after the other or
// alternating.
func (o *out) each(f func(call int, first bool, part string)) {
	parts := make([][]string, len(o.reply.Calls))
	most := 0
	for i, c := range o.reply.Calls {
		parts[i] = o.parts(c.Arguments)
		most = max(most, len(parts[i]))
	}
	if !o.reply.Mixed {
		for i := range parts {
			for n, p := range parts[i] {
				f(i, n == 0, p)
			}
		}
		return
	}
	for n := range most {
		for i := range parts {
			if n < len(parts[i]) {
				f(i, n == 0, parts[i][n])
			}
		}
	}
}

func (o *out) stop(plain, tools string) string {
	switch {
	case o.reply.Stop != "":
		return o.reply.Stop
	case len(o.reply.Calls) > 0:
		return tools
	}
	return plain
}

func (o *out) over() bool { return o.reply.Break || o.reply.Hang != nil }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
