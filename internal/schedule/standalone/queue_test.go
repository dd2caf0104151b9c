package standalone_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/standalone"
)

// director accepts or refuses submissions as a test sets.
type director struct {
	*httptest.Server
	mu      sync.Mutex
	keys    map[string]string // idempotency key → id
	tasks   map[string]string // id → state
	bodies  []api.SubmitRequest
	cancels []string
	asked   map[string]int // id → how often
	refuse  *api.Error     // RetryAfter holds the status
	lose    int            // number of replies to lose
	token   string
}

func newDirector(t *testing.T) *director {
	d := &director{keys: map[string]string{}, tasks: map[string]string{}, asked: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/queue/task", d.submit)
	mux.HandleFunc("GET /api/queue/{id}", d.task)
	mux.HandleFunc("POST /api/queue/{id}/cancel", d.cancel)
	d.Server = httptest.NewServer(handshake.Serve("sesame", mux))
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return d
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (d *director) submit(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var req api.SubmitRequest
	json.NewDecoder(r.Body).Decode(&req)
	d.bodies = append(d.bodies, req)
	key := r.Header.Get("Idempotency-Key")
	id, known := d.keys[key]
	switch {
	case d.token != "" && r.Header.Get("Authorization") != "Bearer "+d.token:
		writeJSON(w, 401, api.Error{Error: "unauthorized", Message: "a token is required"})
		return
	case d.refuse != nil:
		writeJSON(w, d.refuse.RetryAfter, d.refuse)
		return
	case !known:
		id = fmt.Sprintf("queue-%026d", len(d.keys)+1)
		d.keys[key], d.tasks[id] = id, "pending"
	}
	if d.lose > 0 {
		d.lose--
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, 201, api.SubmitResponse{QueueID: id, State: "pending", Position: 1, Replayed: known})
}

func (d *director) task(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[r.PathValue("id")]++
	if state, ok := d.tasks[r.PathValue("id")]; ok {
		writeJSON(w, 200, api.Task{QueueID: r.PathValue("id"), State: state})
		return
	}
	writeJSON(w, 404, api.Error{Error: "not_found", Message: "there is no such task"})
}

func (d *director) cancel(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := r.PathValue("id")
	d.cancels = append(d.cancels, id)
	switch d.tasks[id] {
	case "":
		writeJSON(w, 404, api.Error{Error: "not_found", Message: "there is no such task"})
	case "pending":
		d.tasks[id] = "cancelled"
		writeJSON(w, 200, api.Cancelled{QueueID: id, State: "cancelled"})
	default:
		writeJSON(w, 409, api.Error{Error: "already_ended", Message: "it has ended"})
	}
}

func (d *director) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *director) queue() *standalone.Queue {
	return standalone.NewQueue(func() (standalone.Director, bool, error) {
		return standalone.Director{URL: d.URL, Token: "sesame"}, true, nil
	}, "test/1")
}

func TestLostReplyIsRetriedWithSameKey(t *testing.T) {
	d := newDirector(t)
	d.lose, d.token = 1, "sesame"
	s := row("nightly")
	s.Agent, s.Model, s.Tier, s.TimeoutSeconds, s.SessionID, s.Priority, s.OnLost = "coder", "opus", "heavy", 90, "s1", 3, signalbox.LostRequeue
	s.Checking = signalbox.Checking{Checks: []signalbox.Check{{Name: "test", Run: "make"}}, Retries: new(int)}
	s.Landing = &signalbox.LandWish{Onto: "main", Method: "squash", FastForward: true}
	q := d.queue()
	first, err := q.Submit(t.Context(), s, "schedule:sched-nightly:at-1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := q.Submit(t.Context(), s, "schedule:sched-nightly:at-1")
	if err != nil || again.QueueID != first.QueueID || !again.Known || len(d.keys) != 1 {
		t.Errorf("%+v %+v %v %v", first, again, err, d.keys)
	}
	b := d.bodies[0]
	if b.Source != "scheduler" || b.SourceJob != "nightly" || b.Prompt != "p" || b.Agent != "coder" || b.Model != "opus" || b.Tier != "heavy" || b.TimeoutSeconds != 90 ||
		b.SessionID != "s1" || b.Priority != 3 || b.OnLost != "requeue" || !*b.Thinking || b.Project.Path != "/srv" ||
		len(b.Checks) != 1 || b.Checks[0].Run != "make" || *b.CheckRetries != 0 || b.Land != "main" || b.LandMethod != "squash" || !b.FastForward {
		t.Errorf("%+v", b)
	}
}

func TestDirectorErrorsAreMapped(t *testing.T) {
	d := newDirector(t)
	for _, x := range []struct {
		status int
		code   string
		field  string
		want   signalbox.Code
	}{
		{503, "queue_full", "", signalbox.CodeQueueFull},
		{422, "idempotency_conflict", "", signalbox.CodeIdempotency},
		{503, "unavailable", "", signalbox.CodeUnavailable},
		{500, "store_failed", "", signalbox.CodeStoreFailed},
		{429, "rate_limited", "", signalbox.CodeRateLimited},
		{502, "bad_gateway", "", signalbox.CodeUnavailable},
		{404, "not_found", "agent", signalbox.CodeNotFound},
		{404, "not_found", "", signalbox.CodeValidation},
		{400, "validation_error", "prompt", signalbox.CodeValidation},
		{401, "unauthorized", "", signalbox.CodeUnauthorized},
		{403, "forbidden", "", signalbox.CodeForbidden},
	} {
		d.set(func() {
			d.refuse = &api.Error{Error: x.code, Message: "no", Field: x.field, RetryAfter: x.status}
		})
		_, err := d.queue().Submit(t.Context(), row("a"), "key")
		var full *schedule.FullError
		if got := signalbox.CodeOf(err); got != x.want || errors.As(err, &full) != (x.want == signalbox.CodeQueueFull) {
			t.Errorf("%d %s: %s %v, want %s", x.status, x.code, got, err, x.want)
		}
	}
	d.Close()
	if _, err := d.queue().Submit(t.Context(), row("a"), "key"); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("a director that is away: %v", err)
	}
	none := standalone.NewQueue(func() (standalone.Director, bool, error) { return standalone.Director{}, false, nil }, "")
	var e *signalbox.Error
	if _, err := none.Submit(t.Context(), row("a"), "key"); !errors.As(err, &e) || e.Code != signalbox.CodeNotFound || e.Field != "" {
		t.Errorf("no director: %v", err)
	}
	if none.URL() != "" {
		t.Error(none.URL())
	}
	lost := standalone.NewQueue(func() (standalone.Director, bool, error) {
		return standalone.Director{}, false, errors.New("unreadable")
	}, "")
	if _, err := lost.Submit(t.Context(), row("a"), "key"); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("a director that cannot be looked for: %v", err)
	}
}

func TestEndedAndCancel(t *testing.T) {
	d := newDirector(t)
	q := d.queue()
	got, err := q.Submit(t.Context(), row("a"), "key")
	if err != nil {
		t.Fatal(err)
	}
	ended := func(id string, want bool) {
		t.Helper()
		if is, err := q.Ended(t.Context(), id); is != want || err != nil {
			t.Errorf("ended: %v %v", is, err)
		}
	}
	ended(got.QueueID, false)
	ended("queue-none", true)
	for _, id := range []string{got.QueueID, got.QueueID, "queue-none"} {
		if err := q.Cancel(t.Context(), id, "me"); err != nil {
			t.Error(err)
		}
	}
	ended(got.QueueID, true)
	if len(d.cancels) != 3 {
		t.Errorf("%v", d.cancels)
	}
}

func TestEndsSignalsWhileTaskIsOpen(t *testing.T) {
	d := newDirector(t)
	q := d.queue()
	got, err := q.Submit(t.Context(), row("a"), "key")
	if err != nil {
		t.Fatal(err)
	}
	signs, stop := q.Ends()
	defer stop()
	if _, err := q.Ended(t.Context(), got.QueueID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-signs:
	case <-time.After(time.Minute):
		t.Fatal("no sign")
	}
}
