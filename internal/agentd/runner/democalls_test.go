package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// gate is a fake director with tools, as far as a demo agent calls them.
func gate(t *testing.T, answer func(w http.ResponseWriter, tool string, body api.ToolCall)) string {
	t.Helper()
	s := httptest.NewServer(handshake.Serve("sbxa_1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body api.ToolCall
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if r.Header.Get("Authorization") != "Bearer sbxa_1" || r.Header.Get("X-Signalbox-Execution") != "queue-1" {
			t.Errorf("it does not say whose call it is: %v", r.Header)
		}
		answer(w, strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/tools/"), "/call"), body)
	})))
	t.Cleanup(s.Close)
	return s.URL
}

func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := 0; i < len(events); i += 2 {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", events[i], events[i+1])
	}
}

func runDemo(t *testing.T, prompt, director string) (runner.Outcome, string) {
	t.Helper()
	var env []string
	if director != "" {
		env = []string{"SIGNALBOX_DIRECTOR=" + director, "SIGNALBOX_TOKEN=sbxa_1", "SIGNALBOX_QUEUE_ID=queue-1"}
	}
	p := plan(t, must(t, "demo", runner.Options{}), runner.Task{Prompt: prompt, Env: env})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	return p.Func(ctx, &out), out.String()
}

// TestDemoCallsTools: a demo agent calls the tools that its prompt names, in
// order, and reports when it waits.
func TestDemoCallsTools(t *testing.T) {
	var called []string
	url := gate(t, func(w http.ResponseWriter, tool string, body api.ToolCall) {
		called = append(called, tool+" "+string(body.Arguments))
		stream(w, "progress", `{"position":2}`, "progress", `{"position":2}`, "progress", `{"position":1}`, "result", `{"content":[{"type":"text","text":"3 pages\nand more"}]}`)
	})
	o, said := runDemo(t, "Look it up\n\nsleep 4ms, call browse for 3s and call search_code for 1.5s", url)
	if o.ErrType != "" || o.ToolCount != 2 {
		t.Errorf("the outcome is %+v", o)
	}
	want := []string{`browse {"about":"Look it up …","seconds":3}`, `search_code {"about":"Look it up …","seconds":1.5}`}
	if strings.Join(called, "\n") != strings.Join(want, "\n") {
		t.Errorf("called %q", called)
	}
	for _, line := range []string{"calling browse\n", "waiting for browse: position 2 in its line\nwaiting for browse: position 1 in its line\n", "browse answered: 3 pages …\ncalling search_code\n"} {
		if !strings.Contains(said, line) {
			t.Errorf("it did not print %q:\n%s", line, said)
		}
	}
}

// TestDemoCallFails: if a call fails, in any way, the run fails with the
// reason.
func TestDemoCallFails(t *testing.T) {
	broken := gate(t, func(w http.ResponseWriter, tool string, _ api.ToolCall) {
		if tool == "broken" {
			stream(w, "result", `{"isError":true,"content":[{"type":"text","text":"out of paper"}]}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":"not_found","message":"there is no tool nosuch"}`)
	})
	for prompt, c := range map[string]struct{ director, want string }{
		"call nosuch for 1s": {broken, "the call of nosuch failed: there is no tool nosuch"},
		"call broken for 1s": {broken, "broken failed: out of paper"},
		"call browse for 9x": {broken, "call browse for 9x: want a duration up to an hour, such as 3s"},
		"call browse for 2s": {"", "knows no director"},
	} {
		if o, _ := runDemo(t, "sleep 1ms "+prompt, c.director); o.ErrType != "tool_error" || !strings.Contains(o.ErrMessage, c.want) {
			t.Errorf("%s: %+v", prompt, o)
		}
	}
}

// TestDemoCallSurvivesDirectorRestart: a call is repeated when its director is
// back.
func TestDemoCallSurvivesDirectorRestart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, cut := l.Addr().String(), make(chan struct{})
	first := &http.Server{}
	first.Handler = handshake.Serve("sbxa_1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		first.Close() // the director is killed during the call
		close(cut)
	}))
	go first.Serve(l)
	done := make(chan runner.Outcome, 1)
	go func() {
		o, _ := runDemo(t, "sleep 1ms call browse for 1s", "http://"+addr)
		done <- o
	}()
	<-cut
	back, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handshake.Serve("sbxa_1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { stream(w, "result", `{"content":[]}`) }))}
	go s.Serve(back)
	defer s.Close()
	if o := <-done; o.ErrType != "" || o.ToolCount != 1 {
		t.Errorf("the outcome is %+v", o)
	}
}

// TestDemoPromptsWithoutCalls: the word alone calls nothing.
func TestDemoPromptsWithoutCalls(t *testing.T) {
	for _, prompt := range []string{"call me", "call ana for help", "recall browse for 3s"} {
		if o, said := runDemo(t, "sleep 1ms "+prompt, ""); strings.Contains(said, "calling") || o.ErrMessage != "" {
			t.Errorf("%q: %+v\n%s", prompt, o, said)
		}
	}
}
