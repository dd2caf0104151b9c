package agenttest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Exchange is one request, as a Step gets it.
type Exchange struct {
	Agent *Agent
	W     http.ResponseWriter
	R     *http.Request
	Kind  Request
	ID    string
	Task  api.AgentTask // Offer, Void

	answer func(*Exchange)
}

// Step answers one request.
type Step func(x *Exchange)

// Script sets how the next requests of a kind are answered, one step each. Later requests get the default
// answer again.
func (a *Agent) Script(kind Request, steps ...Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripts[kind] = append(a.scripts[kind], steps...)
}

// Always sets how requests of a kind are answered for which no script is left.
func (a *Agent) Always(kind Request, step Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.habits[kind] = step
}

// ClearScripts removes what is left of all scripts, and the steps set by Always.
func (a *Agent) ClearScripts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.scripts)
	clear(a.habits)
}

// Answer writes a JSON answer.
func (x *Exchange) Answer(status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // the wire types always encode
	}
	x.W.Header().Set("Content-Type", "application/json")
	x.W.WriteHeader(status)
	_, _ = x.W.Write(data) // the client may be gone
}

// Well gives the default answer.
func Well() Step { return func(x *Exchange) { x.answer(x) } }

// Say answers with a status and a body.
func Say(status int, body any) Step { return func(x *Exchange) { x.Answer(status, body) } }

// Busy answers 409 agent_busy; current may be nil.
func Busy(current *api.AgentCurrentTask) Step {
	return Say(http.StatusConflict, api.AgentRefusal{Error: "agent_busy", Message: "the agent is busy", CurrentTask: current})
}

// Stale answers 409 stale_fence.
func Stale(highest int64) Step {
	return Say(http.StatusConflict, api.AgentRefusal{Error: "stale_fence", Message: "a higher fence was seen", HighestFence: highest})
}

// Redirect redirects the client.
func Redirect(to string) Step {
	return func(x *Exchange) { http.Redirect(x.W, x.R, to, http.StatusTemporaryRedirect) }
}

// Garbage answers with something that is not JSON.
func Garbage(status int) Step {
	return func(x *Exchange) {
		x.W.WriteHeader(status)
		_, _ = x.W.Write([]byte("<html>it works!</html>"))
	}
}

// Taking handles the request by default but answers with then: the agent accepts the task and its answer is
// lost.
func Taking(then Step) Step {
	return func(x *Exchange) {
		lost := *x
		lost.W = nowhere{}
		x.answer(&lost)
		then(x)
	}
}

type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// Reset breaks the connection without an answer.
func Reset() Step { return func(x *Exchange) { panic(http.ErrAbortHandler) } }

// Hang gives no answer; it returns when the client gives up.
func Hang() Step { return func(x *Exchange) { <-x.R.Context().Done() } }

// After waits for sign, or until the client gives up, and continues with next.
func After(sign <-chan struct{}, next Step) Step {
	return func(x *Exchange) {
		select {
		case <-sign:
			next(x)
		case <-x.R.Context().Done():
		}
	}
}

// Nothing answers with a status and an empty body.
func Nothing(status int) Step { return func(x *Exchange) { x.W.WriteHeader(status) } }

// Drip writes an answer that never ends, one byte at a time.
func Drip(status int) Step {
	return func(x *Exchange) { x.pour(status, " ", time.Millisecond) }
}

// Flood writes an answer that never ends, as fast as it is read.
func Flood(status int) Step {
	return func(x *Exchange) { x.pour(status, strings.Repeat(" ", 64<<10), 0) }
}

// pour writes a piece again and again until the client disconnects.
func (x *Exchange) pour(status int, piece string, pause time.Duration) {
	x.W.WriteHeader(status)
	flush := http.NewResponseController(x.W)
	for x.R.Context().Err() == nil {
		if _, err := x.W.Write([]byte(piece)); err != nil {
			return
		}
		if pause > 0 {
			_ = flush.Flush() // without a Flusher the data is written all the same
			time.Sleep(pause)
		}
	}
}
