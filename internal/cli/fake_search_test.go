package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// searchRoutes are those of queries and of the live stream.
func (f *fake) searchRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"search": f.search, "bulk": f.bulk, "live": f.live}
}

// matching returns the tasks that a query matches; f.mu is held.
func (f *fake) matching(w http.ResponseWriter, text string) (q signalbox.Query, tasks []*api.Task, ok bool) {
	q, err := signalbox.ParseQuery(text, noon)
	if err != nil {
		answer(w, 400, api.Error{Error: "validation_error", Message: err.Error(), Field: "q"})
		return q, nil, false
	}
	for _, t := range f.tasks {
		row := signalbox.Task{ID: t.QueueID, State: signalbox.State(t.State), Preview: t.PromptPreview, Queue: t.Queue, CreatedAt: t.CreatedAt, Agent: t.Agent}
		if q.Takes(&row) {
			tasks = append(tasks, t)
		}
	}
	return q, tasks, true
}

func (f *fake) search(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q, tasks, ok := f.matching(w, r.URL.Query().Get("q"))
	if !ok {
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	out := api.Search{Query: q.String(), Total: len(tasks), Tasks: []api.LiveTask{}}
	for _, t := range tasks[min(after, len(tasks)):] {
		if len(out.Tasks) == limit {
			out.Next = strconv.Itoa(after + limit)
			break
		}
		out.Tasks = append(out.Tasks, api.LiveTask{
			QueueID: t.QueueID, State: t.State, Reason: t.Reason, Queue: t.Queue, Position: t.Position, Agent: t.Agent,
			PromptPreview: t.PromptPreview, CreatedAt: t.CreatedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
		})
	}
	answer(w, 200, out)
}

func (f *fake) bulk(w http.ResponseWriter, r *http.Request) {
	var req api.BulkRequest
	json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	defer f.mu.Unlock()
	q, tasks, ok := f.matching(w, req.Query)
	if !ok {
		return
	}
	tasks = slices.DeleteFunc(tasks, func(t *api.Task) bool { return client.Ended(t.State) != (req.Action == "retry") })
	out := api.Bulk{Query: q.String(), Action: req.Action, Count: len(tasks)}
	switch {
	case req.Expect == nil:
		answer(w, 200, out)
		return
	case *req.Expect != len(tasks):
		fail(w, 409, "conflict", "another number matches now: nothing was done")
		return
	}
	for _, t := range tasks {
		switch {
		case strings.HasPrefix(t.Prompt, "stubborn"):
			out.Failed++
			out.Results = append(out.Results, api.BulkOutcome{QueueID: t.QueueID, Error: "conflict", Message: "it does not want to"})
			continue
		case req.Action == "cancel":
			f.end(t, "cancelled", "cancelled", "cancelled", "")
		default:
			out.Results = append(out.Results, api.BulkOutcome{QueueID: t.QueueID, NewID: f.add(t.Prompt).QueueID})
		}
		out.Done++
	}
	answer(w, 200, out)
}

// live sends a snapshot and one change. It refuses to reconnect, so that a watching
// client ends.
func (f *fake) live(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Last-Event-ID") != "" {
		fail(w, 403, "forbidden", "that was all")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	coder := api.LiveAgent{Agent: api.Agent{Name: "coder", Slots: 2, InUse: 1}, Face: "running", Current: []api.LiveTask{{QueueID: id(1), State: "working"}}}
	send := func(name string, l api.Live) {
		data, _ := json.Marshal(l)
		fmt.Fprintf(w, "id: e.%d\nevent: %s\ndata: %s\n\n", l.Revision, name, data)
	}
	send("snapshot", api.Live{
		Revision: 1, At: noon, Epoch: "e", Agents: []api.LiveAgent{coder}, Totals: &api.Totals{Pending: 3, MaxSize: 50, Running: 1, Slots: 2},
		Health: &api.Verdict{OK: true, Text: "All is well: 1 agent is connected."},
	})
	fmt.Fprint(w, "event: beat\ndata: {\"revision\":1}\n\n")
	coder.Face, coder.FaceText = "stuck", "not heard from for 20 s"
	send("change", api.Live{
		Revision: 2, At: noon, Epoch: "e", Agents: []api.LiveAgent{coder}, Health: &api.Verdict{Text: "coder is silent."},
		Gone: []string{"agent:other", "task:" + id(4)},
	})
}
