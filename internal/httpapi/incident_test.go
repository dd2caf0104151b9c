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
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// agentBox is a director with a real dispatcher and an agent, over real connections. It is
// for tests of the recorded incidents of the seed's own system, from the outside.
type agentBox struct {
	*apitest.Fixture
	agent *agenttest.Agent
}

func newAgentBox(t *testing.T, o agenttest.Options) *agentBox {
	t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	o.Name, o.Sessions, o.Isolated = "coder", true, 2
	h := &agentBox{Fixture: &apitest.Fixture{T: t, Store: memory.New(memory.Options{})}, agent: agenttest.New(t, o)}
	h.Engine = engine.New(h.Store, engine.Options{Sealer: sealer})
	if _, err := h.Engine.PutAgent(t.Context(), h.agent.Row(), ""); err != nil {
		t.Fatal(err)
	}
	d := push.New(h.Engine, push.Options{Options: execution.Options{Tick: 20 * time.Millisecond}, Confirm: 10 * time.Millisecond, Probe: time.Second})
	if h.Server, err = httpapi.New(httpapi.Config{Engine: h.Engine, Runs: d}); err != nil {
		t.Fatal(err)
	}
	h.HTTP = httptest.NewServer(h.Server.Handler())
	if err := d.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Server.Stop()
		http.DefaultClient.CloseIdleConnections()
		h.HTTP.Close()
		d.Stop()
	})
	testkit.Wait(h.T, "the agent is up", func() bool {
		a, known := d.LiveAgent("coder")
		return known && a.Up && !a.Held && a.IsolatedSlots == 2
	})
	return h
}

// post sends a request in the background.
func (h *agentBox) post(path, body string) <-chan apitest.Reply {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), "POST", h.HTTP.URL+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan apitest.Reply, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			resp = &http.Response{Header: http.Header{}, Body: http.NoBody}
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		done <- apitest.Reply{Response: resp, Body: data}
	}()
	return done
}

// line posts chats one after another, so that their order is known.
func (h *agentBox) line(n int, body string) []<-chan apitest.Reply {
	h.T.Helper()
	var list []<-chan apitest.Reply
	before := len(h.all())
	for i := range n {
		list = append(list, h.post(chatPath, body))
		testkit.Wait(h.T, fmt.Sprintf("chat %d is stored", i+1), func() bool { return len(h.all()) == before+i+1 })
	}
	return list
}

// all returns the ids of all tasks, oldest first.
func (h *agentBox) all() []string {
	h.T.Helper()
	entries, err := h.Store.Journal(h.T.Context(), 0, 10_000)
	if err != nil {
		h.T.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.Kind == signalbox.EventSubmit {
			ids = append(ids, e.QueueID)
		}
	}
	return ids
}

func chatReply(r apitest.Reply, t *testing.T) api.ChatResponse {
	t.Helper()
	var out api.ChatResponse
	if r.StatusCode != 200 {
		t.Fatalf("status %d: %s", r.StatusCode, r.Body)
	}
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The seed answered a chat "queued:N" but called the agent at once. Here the agent gets a
// chat only after the previous one has ended.
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
		if got := chatReply((<-c), t); got.Execution.QueueStatus != want || got.Response != fmt.Sprint("answer ", i) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if found := h.agent.Overlaps(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// In the seed any finish removed the first execution in the line. Here the end of an execution
// that no longer holds the slot changes nothing for others.
func TestIncidentCompletePopsSomeoneElse(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{IgnoresCancel: true})
	chats := h.line(3, `{"message":"m"}`)
	ids := h.all()
	h.agent.AwaitStart(1)
	h.Do("POST", "/api/agents/coder/queue/release", "").Want(t, 200, nil)
	(<-chats[0]).Want(t, 409, nil)
	second := h.agent.AwaitStart(2)
	if second.QueueID != ids[1] {
		t.Fatalf("%+v", second)
	}
	h.agent.TryFinish(ids[0], agenttest.End{Output: "too late"}) // the end of the released execution
	var lane api.Lane
	testkit.Wait(h.T, "the second chat runs", func() bool {
		h.Do("GET", "/api/agents/coder/queue", "").Want(t, 200, &lane)
		return lane.CurrentExecution != nil && lane.CurrentExecution.Status == "running"
	})
	if lane.CurrentExecution.ID != ids[1] || lane.QueueLength != 1 || len(h.agent.Requests(agenttest.Offer)) != 2 {
		t.Errorf("%+v", lane)
	}
	h.agent.Finish(ids[1], agenttest.End{Output: "second"})
	h.agent.AwaitStart(3)
	h.agent.Finish(ids[2], agenttest.End{Output: "third"})
	for i, want := range []string{"second", "third"} {
		if got := chatReply((<-chats[i+1]), t); got.Response != want {
			t.Errorf("%+v", got)
		}
	}
}

// Waiting callers were refused although the backlog had room. Here a chat with overflow
// persist waits in the backlog, beyond the three places of the lane, and is answered like the
// others.
func TestIncidentSyncCallersBypassBacklog(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{})
	chats := h.line(4, `{"message":"m"}`)
	if got := <-h.post(chatPath, `{"message":"m"}`); got.StatusCode != 429 {
		t.Fatalf("%d %s", got.StatusCode, got.Body)
	}
	chats = append(chats, h.line(5, `{"message":"m","overflow":"persist"}`)...)
	var lane api.Lane
	h.agent.AwaitStart(1)
	h.Do("GET", "/api/agents/coder/queue", "").Want(t, 200, &lane)
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
		if got := chatReply((<-c), t); got.Response != fmt.Sprint(i) {
			t.Errorf("chat %d: %+v", i, got)
		}
	}
}

// A chat, a streamed chat and a bypass task run concurrently, over real connections.
func TestChatAndBypassSideBySide(t *testing.T) {
	h := newAgentBox(t, agenttest.Options{})
	chat := h.line(1, `{"message":"m"}`)[0]
	turn := h.agent.AwaitStart(1)
	s := h.openCall(taskPath, `{"message":"beside"}`)
	beside := h.agent.AwaitStart(2)
	if e := s.Next(); e.Name != "accepted" || !strings.Contains(e.Data, beside.QueueID) {
		t.Fatalf("%+v", e)
	}
	h.agent.Print(beside.QueueID, "thinking\n")
	for _, want := range []string{"started", "output"} {
		if e := s.Next(); e.Name != want {
			t.Fatalf("%+v, want %s", e, want)
		}
	}
	h.agent.Finish(beside.QueueID, agenttest.End{Output: "done"})
	if e := s.Next(); e.Name != "result" || !strings.Contains(e.Data, `"response":"done"`) || !strings.Contains(e.Data, "thinking") {
		t.Fatalf("%+v", e)
	}
	if _, more := s.Read(); more {
		t.Error("the stream goes on after its end")
	}
	h.agent.Finish(turn.QueueID, agenttest.End{Output: "turn"})
	if got := chatReply((<-chat), t); got.Response != "turn" || got.SessionID == "" {
		t.Errorf("%+v", got)
	}
}

// openCall opens the stream of a call.
func (h *agentBox) openCall(path, body string) *apitest.Stream {
	return h.OpenStream(path, func(r *http.Request) {
		r.Method = http.MethodPost
		r.Body = io.NopCloser(strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	})
}
