package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// A request with a lost reply is repeated with the same key and creates one task.
func TestCreateToolTaskIsRepeatedWithItsKey(t *testing.T) {
	var keys, made []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		made = append(made, fmt.Sprintf("%s %s %s %s", r.URL.EscapedPath(), r.Header.Get("X-Signalbox-Execution"), r.Header.Get("X-Signalbox-Session"), body))
		if len(keys) == 1 {
			drop(w, r)
		}
		reply(w, 201, api.ToolTask{ID: "queue-1", ToolName: "a/b", Status: "pending"})
	})
	got, err := newClient(t, url, client.Options{}).CreateToolTask(t.Context(), "a/b",
		api.NewToolTask{Arguments: json.RawMessage(`{"n":12345678901234567890}`), TimeoutMS: 5}, client.ToolTaskOptions{Execution: "queue-9", Session: "s"})
	if err != nil || got.ID != "queue-1" {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("keys %q", keys)
	}
	if want := `/api/tools/a%2Fb/tasks queue-9 s {"arguments":{"n":12345678901234567890},"timeout_ms":5}`; made[1] != want {
		t.Errorf("got %s, want %s", made[1], want)
	}
}

func TestWaitToolTaskOutlivesARestart(t *testing.T) {
	states := []string{"pending", "", "working", "completed"}
	asked := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		state := states[min(asked, len(states)-1)]
		asked++
		if state == "" {
			drop(w, r)
		}
		if r.URL.Query().Get("wait") == "" {
			t.Errorf("it polls without a wait: %s", r.URL)
		}
		reply(w, 200, api.ToolTask{ID: "queue-1", State: state, Status: state})
	})
	got, err := newClient(t, url, client.Options{}).WaitToolTask(t.Context(), "queue-1")
	if err != nil || got.State != "completed" || asked < len(states) {
		t.Errorf("%+v, %v after %d", got, err, asked)
	}
	gone := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 404, api.Error{Error: "not_found", Message: "no"})
	})
	if _, err := newClient(t, gone, client.Options{}).WaitToolTask(t.Context(), "queue-1"); client.Code(err) != "not_found" {
		t.Errorf("%v", err)
	}
}

func TestToolTasksAsksForWhatIsWanted(t *testing.T) {
	var query string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		reply(w, 200, api.ToolTasks{Tasks: []api.ToolTask{{ID: "queue-1"}}, Next: "n"})
	})
	got, err := newClient(t, url, client.Options{}).ToolTasks(t.Context(), client.ToolTasksOptions{Tool: "a b", Status: "failed", Limit: 7, Before: "c"})
	if err != nil || got.Next != "n" || query != "before=c&limit=7&status=failed&tool=a+b" {
		t.Errorf("%+v, %v, %s", got, err, query)
	}
}
