package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// pulling starts an agent that does not listen and pulls from the director at
// url.
func (b *box) pulling(name, url string, args ...string) *process {
	b.t.Helper()
	return b.agent(name, url, append([]string{"--pull"}, args...)...)
}

// An agent without a reachable address gets a task, its output can be
// followed while it runs, a chat is answered, and a cancel reaches it at
// once.
func TestAnAgentThatPulls(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	agent := b.pulling("far", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "first")
	var seen strings.Builder
	err := c.FollowOutput(b.ctx(), id, 0, func(out api.Output) error {
		if seen.WriteString(out.Text); seen.String() == "at the gate\n" {
			gate.open() // it is reported while the run continues
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if task := b.completed(c, id); seen.String() != "at the gate\ndid gate first\n" || task.Result.Output != seen.String() {
		t.Errorf("%q, %q", seen.String(), task.Result.Output)
	}
	b.executedOnce(id)
	answer, err := c.Chat(b.ctx(), "far", api.ChatRequest{Message: "hello"}, client.ChatOptions{})
	if err != nil || !strings.Contains(answer.Response.Response, "did hello") {
		t.Errorf("%+v, %v", answer, err)
	}
	second := gate.holdWith(c, "second")
	begun := time.Now()
	if _, err := c.Cancel(b.ctx(), second); err != nil {
		t.Fatal(err)
	}
	task := b.end(c, second)
	if took := time.Since(begun); task.State != "cancelled" || took > 15*time.Second {
		t.Errorf("%s after %s", task.State, took)
	}
	agents, err := c.Agents(b.ctx())
	if err != nil || len(agents) != 1 || agents[0].URL != "" || agents[0].Source != "pull" || agents[0].State != "idle" {
		t.Errorf("%+v, %v", agents, err)
	}
	agent.stop()
	if agents, err = c.Agents(b.ctx()); err != nil || agents[0].State != "down" {
		t.Errorf("%+v, %v", agents, err)
	}
}

// A director that is killed in the middle of a pulling agent's run gets the
// result once when it is back.
func TestADirectorOfAnAgentThatPullsIsKilled(t *testing.T) {
	b := newBox(t)
	director := b.director("--addr", freePort(t))
	gate, command := b.gated()
	b.pulling("far", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "orphan")
	director.kill()
	gate.open()
	b.until("the end of the execution", func() bool {
		lines := executions(t, b.execLog())
		return len(lines) > 0 && lines[len(lines)-1].Event == "end"
	})
	b.director("--addr", strings.TrimPrefix(director.url, "http://"))
	if task := b.completed(c, id); task.Result.Output != "at the gate\ndid gate orphan\n" || task.Attempts != 0 {
		t.Errorf("%+v %+v", task, task.Result)
	}
	b.executedOnce(id)
	b.completed(c, b.submit(c, prompt("next")))
}

// A pulling agent that is killed in the middle of a run reports after its
// restart that the run was interrupted, and takes the next task.
func TestAnAgentThatPullsIsKilled(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	agent := b.pulling("far", director.url, command...)
	c := b.client(director.url)
	lost := gate.holdWith(c, "lost")
	agent.kill()
	b.pulling("far", director.url, command...)
	if task := b.end(c, lost); task.State != "failed" || task.Reason != "interrupted" || task.Message == "" {
		t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
	}
	b.completed(c, b.submit(c, prompt("next")))
	b.executedOnce(lost)
}

// A pulling agent that is stopped reports how its run ended.
func TestAnAgentThatPullsStops(t *testing.T) {
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	agent := b.pulling("far", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "cut off")
	agent.signal(syscall.SIGTERM)
	if task := b.end(c, id); task.Reason != "interrupted" {
		t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
	}
	if code := agent.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A claim whose answer is lost gets the same answer again: there is one
// execution.
func TestTheAnswerToAClaimIsLost(t *testing.T) {
	b := newBox(t)
	director := b.director()
	at, err := url.Parse(director.url)
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/claim") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if bytes.Contains(body, []byte(`"task"`)) && lost.Add(1) == 1 {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = at.Host
		r.Header["X-Forwarded-For"] = nil // as a local request
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	_, command := b.gated()
	agent := b.pulling("far", front.URL, command...)
	defer agent.stop()
	c := b.client(director.url)
	id := b.submit(c, prompt("once"))
	b.completed(c, id)
	b.executedOnce(id)
	if lost.Load() < 2 {
		t.Errorf("the answer was lost %d times and given again %d times", min(lost.Load(), 1), lost.Load()-1)
	}
}

// Two pulling agents cannot have the same name.
func TestTwoAgentsThatPullWithOneName(t *testing.T) {
	b := newBox(t)
	director := b.director()
	b.pulling("far", director.url)
	second := b.start("agent", "--pull", "--name", "far", "--kind", "demo", "--data", b.root+"/other", "--director", director.url)
	second.says("another agent named far")
	second.stop()
}
