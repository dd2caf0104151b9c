package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// networkFault is what the network does with a request.
type networkFault int

const (
	arrives    networkFault = iota
	refused                 // connection refused, or an error before anything is sent
	lost                    // it is lost without an answer
	reset                   // the connection breaks before the agent has it
	unheard                 // the agent has it, and its answer is lost
	broken                  // the agent has it, and the connection breaks
	slow                    // the connection breaks, and the agent gets it later
	late                    // it arrives after its sender has given up
	twice                   // it arrives again later
	garbled                 // the answer is malformed
	failing                 // the agent answers 500 and does nothing
	faultCount              // number of faults
)

var faultNames = [...]string{"", " refused", " lost", " reset", " unheard", " broken", " slow", " late", " twice", " garbled", " failing"}

// network carries the requests of one director.
type network struct {
	w *world
	d *director
}

var errReset = errors.New("connection reset by peer")

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	w := n.w
	defer w.scheduler.publish()
	a := w.agentAt(r.URL.Host)
	q := parse(r)
	me := w.scheduler.current()
	w.scheduler.turn(me, "send "+r.Method+" "+a.name+r.URL.Path, n.d.isDead)
	if n.d.isDead() {
		return nil, errReset
	}
	q.late = a.plain && w.town != nil && n.wasPaused(a, q)
	f := w.chooseFault(a)
	w.note("net", me, r.Method, a.name+r.URL.Path+faultNames[f])
	if f == refused || a.down {
		return nil, syscall.ECONNREFUSED
	}
	if t := httptrace.ContextClientTrace(r.Context()); t != nil && t.GotConn != nil {
		t.GotConn(httptrace.GotConnInfo{})
	}
	if a.silent && f != reset {
		w.post(a, q) // a stopped process reads it when it continues
		f = lost
	}
	switch f {
	case reset:
		return nil, errReset
	case failing:
		return respond(r, no(http.StatusInternalServerError, "storage_error"))
	case lost:
		return n.noAnswer(r, me)
	case slow:
		w.deliverSlowly(a, q)
		return nil, errReset
	case late:
		w.post(a, q)
		return n.noAnswer(r, me)
	case twice:
		w.post(a, q)
	}
	got, err := n.await(r, a, q, me)
	switch {
	case err != nil:
		return nil, err
	case f == unheard:
		return n.noAnswer(r, me)
	case f == broken:
		return nil, errReset
	case f == garbled:
		return &http.Response{StatusCode: got.status, Body: io.NopCloser(strings.NewReader("<html>it works!</html>")), Request: r}, nil
	}
	return respond(r, got)
}

// wasPaused reports whether a director was paused after its decision to send a task: it has lost the agent,
// or the task was claimed by another.
func (n *network) wasPaused(a *agent, q *request) bool {
	if q.task.QueueID == "" {
		return false
	}
	t, err := n.w.task(q.task.QueueID)
	return !n.d.holds(a.name) || (err == nil && !(t.State.InFlight() && t.Fence == q.task.Fence))
}

// await delivers the request, repeatedly while the agent holds it.
func (n *network) await(r *http.Request, a *agent, q *request, me string) (answer, error) {
	for {
		got := a.handle(q)
		if got.wait <= 0 {
			return got, nil
		}
		begun := time.Now()
		timer := time.NewTimer(got.wait)
		select {
		case <-got.wake:
		case <-timer.C:
		case <-r.Context().Done():
		}
		timer.Stop()
		n.w.scheduler.turn(me, "hear", n.d.isDead)
		switch {
		case r.Context().Err() != nil:
			return got, r.Context().Err()
		case n.d.isDead(), a.down, a.silent:
			return got, errReset
		}
		q.wait -= time.Since(begun)
	}
}

// deliverSlowly delivers a request that is buffered in the network for a while.
func (w *world) deliverSlowly(a *agent, q *request) {
	name, l := fmt.Sprintf("mail %d", w.steps), delayedRequest{a, q, w.now()}
	q.wait = 0
	time.AfterFunc(w.between(0, maxDelay/2), func() {
		defer w.scheduler.publish()
		w.scheduler.turn(name, "arrives", w.isOver)
		if !w.isOver() && !a.down && !a.silent {
			w.note("slow", q.method, a.name+q.path)
			q.late = q.late || w.now().Sub(l.sent) > maxDelay || a.mayBeMistaken()
			a.handle(q)
		}
	})
}

// mayBeMistaken reports whether an arriving task may be taken for another: its agent knows no queue_id, and
// began the other one a moment before.
func (a *agent) mayBeMistaken() bool {
	const moment = 3 * time.Second // two clocks, and the delay
	return a.plain && len(a.runs) > 0 && a.w.now().Sub(a.runs[len(a.runs)-1].begun) < moment
}

// noAnswer waits for an answer that does not arrive.
func (n *network) noAnswer(r *http.Request, me string) (*http.Response, error) {
	<-r.Context().Done()
	n.w.scheduler.turn(me, "give up", n.d.isDead)
	return nil, r.Context().Err()
}

func respond(r *http.Request, a answer) (*http.Response, error) {
	body, err := json.Marshal(a.body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func parse(r *http.Request) *request {
	q := &request{method: r.Method, path: r.URL.Path}
	query := r.URL.Query()
	q.wait, _ = time.ParseDuration(query.Get("wait"))
	q.after, _ = strconv.Atoi(query.Get("after"))
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&q.task); err != nil && !errors.Is(err, io.EOF) {
			panic(fmt.Sprintf("a request that the agent cannot read: %v", err))
		}
	}
	return q
}
