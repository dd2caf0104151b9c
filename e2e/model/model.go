package model

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Reply is one turn of the model. The zero value answers "ok".
type Reply struct {
	Text   string        // the text, before the tool calls
	Tool   *Tool         // a tool call
	Tools  []Tool        // further tool calls in the same turn
	Chunks int           // number of parts in which Text is streamed; default 1
	Pause  time.Duration // before each part
	Usage  Usage         // reported usage; zero: InputTokens and OutputTokens

	Status  int    // 400 and above: an HTTP error instead
	Message string // of the error
	Failure any    // the error's body, instead of the API's usual form

	Header map[string]string // of the response, for example those of a limit

	Hang bool // stream the beginning, then nothing, until the client disconnects or the server closes
}

// Usage counts tokens.
type Usage struct{ Input, Output int }

// usage is the reply's reported usage.
func (p Reply) usage() Usage { return cmp.Or(p.Usage, Usage{InputTokens, OutputTokens}) }

// Tool is a call of one of the tools that the CLI offers.
type Tool struct {
	Name  string
	Input map[string]any
}

// Shell makes a call of the CLI's own shell tool with a command line; the
// request decides the tool and its argument.
func Shell(command string) *Tool {
	return &Tool{Name: shellName, Input: map[string]any{"command": command}}
}

// shellName stands for the CLI's name for its shell.
const shellName = "\x00shell"

// Request is a request from a CLI.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
	Model  string
	Side   bool     // a side request: answered without the script
	Tools  []string // names of the offered tools
	Text   string   // all text of the conversation, newest last
	Turn   int      // 0-based; side requests do not count
}

// Script answers a turn. It may block; it runs once for each request in
// flight.
type Script func(Request) Reply

// Replies answers the turns one after another, and repeats the last reply.
func Replies(replies ...Reply) Script {
	return func(r Request) Reply { return replies[min(r.Turn, len(replies)-1)] }
}

// Server is a scripted model. Its URL has no path.
type Server struct {
	URL string

	srv    *http.Server
	served chan struct{}
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	script  Script
	reqs    []Request
	turn    int
	arrived chan struct{}
}

// Start listens on a free loopback port.
func Start(script Script) (*Server, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + ln.Addr().String(), script: script, served: make(chan struct{}), arrived: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	for _, prefix := range []string{"", "/v1"} {
		mux.HandleFunc("POST "+prefix+"/messages", s.handle(anthropic{}))
		mux.HandleFunc("POST "+prefix+"/responses", s.handle(responses{}))
		mux.HandleFunc("POST "+prefix+"/chat/completions", s.handle(chat{}))
		mux.HandleFunc("POST "+prefix+"/messages/count_tokens", countTokens)
		mux.HandleFunc("GET "+prefix+"/models", listModels)
	}
	s.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.srv.Serve(ln)
	}()
	return s, nil
}

// Close ends hanging streams and the server.
func (s *Server) Close() {
	s.cancel()
	_ = s.srv.Close()
	<-s.served
}

// Use replaces the script and counts turns from 0 again.
func (s *Server) Use(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.turn, s.reqs = script, 0, nil
}

// Requests returns the requests since Use, including side requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.reqs...)
}

// Await returns once n turns have been requested.
func (s *Server) Await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		turn, ch := s.turn, s.arrived
		s.mu.Unlock()
		if turn >= n {
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d turns were asked for: %w", turn, n, ctx.Err())
		}
	}
}

func (s *Server) handle(f format) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 32<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r := Request{Path: req.URL.Path, Header: req.Header.Clone(), Body: body}
		stream, err := f.parse(body, &r)
		if err != nil {
			writeJSON(w, http.StatusBadRequest, f.failure(http.StatusBadRequest, err.Error()))
			return
		}
		p := s.decide(&r)
		for name, value := range p.Header {
			w.Header().Set(name, value)
		}
		if p.Status >= 400 {
			body := p.Failure
			if body == nil {
				body = f.failure(p.Status, p.Message)
			}
			writeJSON(w, p.Status, body)
			return
		}
		if !stream {
			writeJSON(w, http.StatusOK, f.whole(r, p))
			return
		}
		out := &sse{w: w, req: req.Context(), srv: s.ctx}
		out.begin()
		f.stream(out, r, p)
	}
}

// decide records the request and calls the script. A request without tools is
// a side request, for example for a title.
func (s *Server) decide(r *Request) Reply {
	script := s.note(r)
	if r.Side {
		return Reply{Text: "A short title"}
	}
	p := script(*r)
	if p.Text == "" && len(p.calls()) == 0 && p.Status == 0 {
		p.Text = "ok"
	}
	return p
}

func (s *Server) note(r *Request) Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Side = len(r.Tools) == 0
	r.Turn = s.turn
	s.reqs = append(s.reqs, *r)
	if !r.Side {
		s.turn++
		close(s.arrived)
		s.arrived = make(chan struct{})
	}
	return s.script
}

// calls are all tool calls of a reply.
func (p Reply) calls() []Tool {
	if p.Tool == nil {
		return p.Tools
	}
	return append([]Tool{*p.Tool}, p.Tools...)
}

// callID is a unique ID for the n-th call of the reply.
func (r Request) callID(prefix string, n int) string {
	if n == 0 {
		return fmt.Sprintf("%s_%d", prefix, r.Turn)
	}
	return fmt.Sprintf("%s_%d_%d", prefix, r.Turn, n)
}

// parts splits a reply's text for streaming.
func (p Reply) parts() []string {
	n := max(1, p.Chunks)
	text := []rune(p.Text)
	var out []string
	for i := range n {
		if part := string(text[len(text)*i/n : len(text)*(i+1)/n]); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// The default usage of a turn.
const (
	InputTokens  = 11
	OutputTokens = 7
)

// texts collects the strings under "text" and "content" of any JSON value.
func texts(v any, out *strings.Builder) {
	switch v := v.(type) {
	case string:
		out.WriteString(v + "\n")
	case []any:
		for _, e := range v {
			texts(e, out)
		}
	case map[string]any:
		for _, k := range []string{"text", "content", "output", "arguments"} {
			if e, ok := v[k]; ok {
				texts(e, out)
			}
		}
	}
}

// resolve finds the tool's name in the request, and adapts the input of the
// shell to it.
func (t Tool) resolve(r Request) (string, map[string]any) {
	if t.Name != shellName {
		return t.Name, t.Input
	}
	command := t.Input["command"]
	for _, name := range r.Tools {
		switch name {
		case "Bash", "bash":
			return name, map[string]any{"command": command, "description": "run a command"}
		case "exec_command":
			return name, map[string]any{"cmd": command}
		case "shell_command":
			return name, map[string]any{"command": command}
		case "shell":
			return name, map[string]any{"command": []any{"bash", "-lc", command}}
		}
	}
	return "shell", t.Input
}
