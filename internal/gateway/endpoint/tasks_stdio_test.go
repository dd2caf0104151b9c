package endpoint_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// line serves a client over pipes and returns a function that sends one
// request.
func (r *fixture) line(o endpoint.Options) (ask func(t *testing.T, method, params, meta string) wire, stop func()) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(r.t.Context())
	served := make(chan error, 1)
	go func() {
		served <- endpoint.ServeStdio(ctx, r.gateway, gateway.Caller{Session: "stdio:1"}, in, out, o)
		out.Close()
	}()
	answers := bufio.NewReader(fromServer)
	ask = func(t *testing.T, method, params, meta string) wire {
		t.Helper()
		_, err := fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s,"_meta":{%s}}}`+"\n", method, params, metaOf(meta))
		if err != nil {
			t.Fatal(err)
		}
		text, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return r.read(reply{body: text})
	}
	return ask, func() {
		toServer.Close()
		if err := testkit.Receive(r.t, "it is served no more", served); err != nil {
			r.t.Error(err)
		}
		cancel()
	}
}

// Over stdin and stdout tasks work as over HTTP, also if another endpoint has
// them.
func TestTasksOverStdio(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{TaskAfter: 10 * time.Millisecond})
	for name, o := range map[string]endpoint.Options{
		"of its own": {Tasks: b, TaskAfter: time.Minute},
		"of another": {Relay: &endpoint.Relay{URL: r.url, Headers: map[string]string{"Test-Session": "s"}, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}},
	} {
		t.Run(name, func(t *testing.T) {
			line, stop := r.line(o)
			defer stop()
			made := line(t, "tools/call", `"name":"s__job"`, declaring)
			if made.Result.Type != "task" {
				t.Fatalf("%+v", made)
			}
			testkit.Receive(t, "the tool runs", r.script.came)
			about := `"taskId":"` + made.Result.TaskID + `"`
			if w := line(t, "tasks/get", about, declaring).Result; w.Status != "working" {
				t.Errorf("%+v", w)
			}
			if w := line(t, "tasks/get", about, "").Error; w == nil || w.Code != -32021 {
				t.Errorf("%+v", w)
			}
			r.script.goOn <- struct{}{}
			testkit.Wait(t, "it is completed", func() bool { return line(t, "tasks/get", about, declaring).Result.Status == "completed" })
			if w := line(t, "tasks/cancel", about, declaring); w.Error != nil || w.Result.Type != "complete" {
				t.Errorf("%+v", w)
			}
			if w := line(t, "tasks/get", `"taskId":"x"`, declaring).Error; w == nil || w.Code != -32602 {
				t.Errorf("%+v", w)
			}
			if w := line(t, "tools/call", `"name":"s__echo","arguments":{"n":12345678901234567890}`, declaring); w.Result.Type != "complete" {
				t.Errorf("%+v", w)
			}
		})
	}
}

// A relay passes on progress, and cancels a call that its client cancels.
func TestRelayForwardsProgress(t *testing.T) {
	r, _ := newTaskFixture(t, endpoint.Options{TaskAfter: time.Hour})
	holder := r.connect(modern)
	_ = holder.call(t.Context(), "s__hold", nil)
	testkit.Receive(t, "the queue is held", r.script.came)
	c, hangUp, served := r.stdio(modern, endpoint.Options{Relay: &endpoint.Relay{URL: r.url, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := c.call(ctx, "s__hold", mcp.Meta{
		"progressToken": "p", "io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	})
	if p := testkit.Receive(t, "its place", c.progress); p.Message != "queued, position 1" {
		t.Errorf("%+v", p)
	}
	cancel()
	if err := testkit.Receive(t, "the call is given up", done); err == nil {
		t.Error("a cancelled call succeeded")
	}
	testkit.Wait(t, "it has left the queue", func() bool { return r.queue("one").Depth == 0 })
	hangUp()
	if err := testkit.Receive(t, "it is served no more", served); err != nil {
		t.Error(err)
	}
}

func TestRelayToUnreachableEndpoint(t *testing.T) {
	r, _ := newTaskFixture(t, endpoint.Options{})
	line, stop := r.line(endpoint.Options{Relay: &endpoint.Relay{URL: "http://127.0.0.1:1/mcp"}})
	defer stop()
	w := line(t, "tools/call", `"name":"s__job"`, declaring)
	if w.Error == nil || !strings.Contains(w.Error.Message, "is it running?") {
		t.Errorf("%+v", w)
	}
}
