package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// agentBox is a director with a real dispatcher and an agent, over real
// connections. What is on record against the seed's own system is tried here
// from the outside.
type agentBox struct {
	*box
	agent *agenttest.Agent
}

func newAgentBox(t *testing.T, o agenttest.Options) *agentBox {
	t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	o.Name, o.Sessions, o.Isolated = "coder", true, 2
	h := &agentBox{box: &box{t: t, store: memory.New(memory.Options{})}, agent: agenttest.New(t, o)}
	h.engine = engine.New(h.store, engine.Options{Sealer: sealer})
	if _, err := h.engine.PutAgent(t.Context(), h.agent.Row(), ""); err != nil {
		t.Fatal(err)
	}
	d := push.New(h.engine, push.Options{Options: execution.Options{Tick: 20 * time.Millisecond}, Confirm: 10 * time.Millisecond, Probe: time.Second})
	if h.dir, err = httpapi.New(httpapi.Config{Engine: h.engine, Runs: d}); err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewServer(h.dir.Handler())
	if err := d.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.dir.Stop()
		http.DefaultClient.CloseIdleConnections()
		h.server.Close()
		d.Stop()
	})
	h.await("the agent is up", func() bool {
		a, known := d.LiveAgent("coder")
		return known && a.Up && !a.Held && a.IsolatedSlots == 2
	})
	return h
}

// await waits until ok says so; it looks whenever the journal grew.
func (h *agentBox) await(what string, ok func() bool) {
	h.t.Helper()
	signs, stop := h.engine.WatchJournal()
	defer stop()
	over := time.After(time.Minute)
	for !ok() {
		select {
		case <-signs:
		case <-time.After(10 * time.Millisecond): // what the dispatcher knows of an agent is in no journal
		case <-over:
			h.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// post sends a request in the background.
func (h *agentBox) post(path, body string) <-chan reply {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), "POST", h.server.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan reply, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			resp = &http.Response{Header: http.Header{}, Body: http.NoBody}
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		done <- reply{Response: resp, body: data}
	}()
	return done
}

// line posts chats one after the other, so that their order is known.
func (h *agentBox) line(n int, body string) []<-chan reply {
	h.t.Helper()
	var list []<-chan reply
	before := len(h.all())
	for i := range n {
		list = append(list, h.post(chatPath, body))
		h.await(fmt.Sprintf("chat %d is stored", i+1), func() bool { return len(h.all()) == before+i+1 })
	}
	return list
}

// all lists the ids of all tasks, the oldest first.
func (h *agentBox) all() []string {
	h.t.Helper()
	entries, err := h.store.Journal(h.t.Context(), 0, 10_000)
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.Kind == signalbox.EventSubmit {
			ids = append(ids, e.QueueID)
		}
	}
	return ids
}

func (r reply) chat(t *testing.T) api.ChatResponse {
	t.Helper()
	var out api.ChatResponse
	if r.StatusCode != 200 {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The seed told a chat "queued:N" and called the agent at once all the same.
// Here the agent sees a chat only after the one before has ended.
func TestIncidentChatIsToldQueuedAndCallsAtOnce(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{})
	chats := h.line(4, `{"message":"m"}`)
	for i, id := range h.all() {
		run := h.agent.AwaitStart(i + 1)
		if n := len(h.agent.Requests(agenttest.Offer)); run.QueueID != id || n != i+1 {
			t.Fatalf("while chat %d runs the agent has %d offers, and runs %s, not %s", i+1, n, run.QueueID, id)
		}
		h.agent.Finish(id, agenttest.End{Output: fmt.Sprint("answer ", i)})
	}
	for i, c := range chats {
		want := "running"
		if i > 0 {
			want = fmt.Sprintf("queued:%d", i)
		}
		if got := (<-c).chat(t); got.Execution.QueueStatus != want || got.Response != fmt.Sprint("answer ", i) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if found := h.agent.Overlaps(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// In the seed anyone's finish popped whatever stood first. Here the end of an
// execution that no longer holds the slot changes nothing for those that do.
func TestIncidentCompletePopsSomeoneElse(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{Deaf: true})
	chats := h.line(3, `{"message":"m"}`)
	ids := h.all()
	h.agent.AwaitStart(1)
	h.do("POST", "/api/agents/coder/queue/release", "").want(t, 200, nil)
	(<-chats[0]).want(t, 409, nil)
	second := h.agent.AwaitStart(2)
	if second.QueueID != ids[1] {
		t.Fatalf("%+v", second)
	}
	h.agent.TryFinish(ids[0], agenttest.End{Output: "too late"}) // the end of the one that was released
	var lane api.Lane
	h.await("the second chat runs", func() bool {
		h.do("GET", "/api/agents/coder/queue", "").want(t, 200, &lane)
		return lane.CurrentExecution != nil && lane.CurrentExecution.Status == "running"
	})
	if lane.CurrentExecution.ID != ids[1] || lane.QueueLength != 1 || len(h.agent.Requests(agenttest.Offer)) != 2 {
		t.Errorf("%+v", lane)
	}
	h.agent.Finish(ids[1], agenttest.End{Output: "second"})
	h.agent.AwaitStart(3)
	h.agent.Finish(ids[2], agenttest.End{Output: "third"})
	for i, want := range []string{"second", "third"} {
		if got := (<-chats[i+1]).chat(t); got.Response != want {
			t.Errorf("%+v", got)
		}
	}
}

// Capacity was refused to those who waited while the backlog lay unused. A
// chat that is to persist waits in the backlog, beyond the three places of the
// lane, and is answered like the others.
func TestIncidentSyncCallersBypassBacklog(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{})
	chats := h.line(4, `{"message":"m"}`)
	if got := <-h.post(chatPath, `{"message":"m"}`); got.StatusCode != 429 {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	chats = append(chats, h.line(5, `{"message":"m","overflow":"persist"}`)...)
	var lane api.Lane
	h.agent.AwaitStart(1)
	h.do("GET", "/api/agents/coder/queue", "").want(t, 200, &lane)
	if lane.QueueLength != 8 {
		t.Errorf("%+v", lane)
	}
	for i, id := range h.all() {
		if run := h.agent.AwaitStart(i + 1); run.QueueID != id {
			t.Fatalf("%+v, want %s", run, id)
		}
		h.agent.Finish(id, agenttest.End{Output: fmt.Sprint(i)})
	}
	for i, c := range chats {
		if got := (<-c).chat(t); got.Response != fmt.Sprint(i) {
			t.Errorf("chat %d: %+v", i, got)
		}
	}
}

// A chat, a stream of one and a bypass task beside them, over real
// connections.
func TestChatAndBypassSideBySide(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{})
	chat := h.line(1, `{"message":"m"}`)[0]
	turn := h.agent.AwaitStart(1)
	s := h.openCall(taskPath, `{"message":"beside"}`)
	beside := h.agent.AwaitStart(2)
	if e := s.must(); e.name != "accepted" || !strings.Contains(e.data, beside.QueueID) {
		t.Fatalf("%+v", e)
	}
	h.agent.Print(beside.QueueID, "thinking\n")
	for _, want := range []string{"started", "output"} {
		if e := s.must(); e.name != want {
			t.Fatalf("%+v, want %s", e, want)
		}
	}
	h.agent.Finish(beside.QueueID, agenttest.End{Output: "done"})
	if e := s.must(); e.name != "result" || !strings.Contains(e.data, `"response":"done"`) || !strings.Contains(e.data, "thinking") {
		t.Fatalf("%+v", e)
	}
	if _, more := s.next(); more {
		t.Error("the stream goes on after its end")
	}
	h.agent.Finish(turn.QueueID, agenttest.End{Output: "turn"})
	if got := (<-chat).chat(t); got.Response != "turn" || got.SessionID == "" {
		t.Errorf("%+v", got)
	}
}

// openCall opens the stream of a call.
func (h *agentBox) openCall(path, body string) *reading {
	return h.open(path, func(r *http.Request) {
		r.Method = http.MethodPost
		r.Body = io.NopCloser(strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	})
}
