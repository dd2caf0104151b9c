package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func live(t *testing.T, name string, l api.Live) string {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("id: e.%d\nevent: %s\ndata: %s\n\n", l.Revision, name, data)
}

// A broken stream is resumed after the last event seen. Beats and unknown events do
// not change the position.
func TestLiveResumes(t *testing.T) {
	var asked []string
	url := streams(t, &asked,
		live(t, "snapshot", api.Live{Revision: 1})+live(t, "change", api.Live{Revision: 2})+"event: beat\ndata: {\"revision\":2}\n\n: alive\n\nevent: later\nid: x\ndata: 7\n\nid: e.3\nevent: change\ndata: {",
		live(t, "resync", api.Live{Revision: 9}))
	var got []string
	var last error
	for e, err := range newClient(t, url, client.Options{}).Live(t.Context()) {
		if err != nil {
			last = err
			break
		}
		got = append(got, fmt.Sprint(e.Kind, e.Live.Revision))
	}
	if fmt.Sprint(got) != "[snapshot1 change2 beat2 resync9]" || fmt.Sprint(asked) != "[   e.2  e.9]" || client.Code(last) == "" {
		t.Errorf("%v, asked %q, %v", got, asked, last)
	}
}

// A director that sends nothing for five seconds counts as dead, even if the
// connection is open.
func TestLiveReconnectsAfterSilence(t *testing.T) {
	asked := make(chan string, 10)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Last-Event-ID")
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, live(t, "snapshot", api.Live{Revision: 1}))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for range newClient(t, url, client.Options{StreamIdle: 50 * time.Millisecond}).Live(t.Context()) {
		if len(asked) == 2 {
			break
		}
	}
	if first, second := <-asked, <-asked; first != "" || second != "e.1" {
		t.Errorf("asked with %q, then with %q", first, second)
	}
}

func agent(name, face string) api.LiveAgent {
	return api.LiveAgent{Agent: api.Agent{Name: name}, Face: face}
}

func TestBoardIsWhatTheEventsComeTo(t *testing.T) {
	var b client.Board
	b.Apply(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{Revision: 3, Agents: []api.LiveAgent{agent("x", "idle")}}})
	if b.Known || len(b.Agents) != 0 {
		t.Errorf("a change of nothing is known: %+v", b)
	}
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	b.Apply(client.LiveEvent{Kind: client.LiveSnapshot, Live: api.Live{
		Revision: 4, At: at, Agents: []api.LiveAgent{agent("b", "idle"), agent("d", "running")}, Queues: []api.LiveQueue{{Name: "work", Waiting: 2}},
		Tasks: []api.LiveTask{{QueueID: "queue-2", State: "working"}}, Totals: &api.Totals{Running: 1}, Health: &api.Verdict{OK: true},
		Capacity: []api.ToolQueue{{Name: "browser"}}, Pauses: &[]api.Pause{{Queue: "work"}}, Pressure: []api.Pressure{{At: at}},
	}})
	kept := b.Agents
	b.Apply(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{
		Revision: 5, At: at.Add(time.Second), Agents: []api.LiveAgent{agent("a", "down"), agent("d", "idle"), agent("e", "idle")},
		Tasks:  []api.LiveTask{{QueueID: "queue-1", State: "dispatching"}, {QueueID: "queue-2", State: "completed"}, {QueueID: "queue-3", State: "pending"}},
		Gone:   []string{"agent:b", "capacity:browser", "task:queue-9", "strange"},
		Totals: &api.Totals{Running: 2}, Pauses: &[]api.Pause{}, Pressure: []api.Pressure{{At: at.Add(31 * time.Minute)}},
	}})
	var names []string
	for _, a := range b.Agents {
		names = append(names, a.Name+" "+a.Face)
	}
	if !slices.Equal(names, []string{"a down", "d idle", "e idle"}) || len(b.Capacity) != 0 || len(b.Queues) != 1 || len(b.Pauses) != 0 || len(b.Pressure) != 1 {
		t.Errorf("%+v", b)
	}
	if len(b.Tasks) != 1 || b.Tasks[0].QueueID != "queue-1" || b.Totals.Running != 2 || !b.Health.OK || b.Revision != 5 {
		t.Errorf("%+v", b)
	}
	if kept[0].Name != "b" || kept[1].Face != "running" {
		t.Errorf("a list that was kept has changed: %+v", kept)
	}
	b.Apply(client.LiveEvent{Kind: client.LiveBeat, Live: api.Live{Revision: 5, At: at.Add(2 * time.Second)}})
	if !b.At.Equal(at.Add(2*time.Second)) || len(b.Agents) != 3 {
		t.Errorf("%+v", b)
	}
	b.Apply(client.LiveEvent{Kind: client.LiveResync, Live: api.Live{Revision: 9}})
	if !b.Known || len(b.Agents)+len(b.Tasks)+len(b.Queues) != 0 {
		t.Errorf("%+v", b)
	}
}
