package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// says waits until one of the directors has logged text, and returns it.
func (c *cluster) says(text string, among ...*process) *process {
	c.Helper()
	var who *process
	testkit.Wait(c, fmt.Sprintf("one says %q", text), func() bool {
		at := slices.IndexFunc(among, func(p *process) bool { return strings.Contains(p.log.String(), text) })
		if at >= 0 {
			who = among[at]
		}
		return at >= 0
	})
	return who
}

// codeOf returns the code of a director's answer.
func codeOf(err error) signalbox.Code {
	var answer *client.Error
	if errors.As(err, &answer) {
		return signalbox.Code(answer.Body.Error)
	}
	return ""
}

// eventually submits a task as soon as the store is available again.
func (c *cluster) eventually(p *process, agent string) string {
	c.Helper()
	var id string
	testkit.Wait(c, "the store is there again", func() bool {
		got, err := p.Submit(c.Context(), api.SubmitRequest{Prompt: "do it", Agent: agent}, client.SubmitOptions{})
		if err != nil && codeOf(err) != signalbox.CodeUnavailable {
			c.Fatal(err)
		}
		id = got.QueueID
		return err == nil
	})
	return id
}

// TestIncidentDataFolderPutBackUnderDirectors: the data folder of the store server is
// restored from an earlier copy while two directors run. The directors report that
// later writes are lost. They ask the agents what they run before they offer them
// anything. No agent runs two tasks at once, no ended task runs again, and everything
// acknowledged afterwards is kept.
func TestIncidentDataFolderPutBackUnderDirectors(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	c := &cluster{T: t, store: server.URL("postgres"), vars: []string{"SIGNALBOX_SECRET_KEY=" + testSecretKey}}
	all := []*process{c.start("a"), c.start("b")}
	one, two := agenttest.New(c, agenttest.Options{Name: "one"}), agenttest.New(c, agenttest.Options{Name: "two"})
	c.register(all[0], one, two)

	runsOn, ended := c.submit(all[0], "one"), c.submit(all[1], "two")
	first, second := one.AwaitStart(1), two.AwaitStart(1)
	c.working(all[0], runsOn)
	c.working(all[0], ended)
	begunAfter := c.submit(all[0], "two") // queued behind a task that ends after the copy
	putBack, err := server.Copy()
	if err != nil {
		t.Fatal(err)
	}

	lost := c.eventually(all[0], "one")
	two.Finish(second.TaskID, agenttest.End{})
	c.ends(all[1], ended, signalbox.Completed)
	if got := two.AwaitStart(2).QueueID; got != begunAfter {
		t.Fatalf("%s runs, want %s", got, begunAfter)
	}
	c.working(all[0], begunAfter)
	if err := putBack(); err != nil {
		t.Fatal(err)
	}

	c.says("THE SERVER LOST WHAT IT HAD ", all...) // logged by the director that finds it first
	for _, p := range all {
		c.says("agents are asked what they run before they are offered anything", p)
		if _, err := p.Task(t.Context(), lost); codeOf(err) != signalbox.CodeNotFound {
			t.Errorf("what was lost is there at %s: %v", p.name, err)
		}
	}
	doctor := must(all[0].Doctor(t.Context()))(t)
	told := false
	for _, check := range doctor.Checks {
		told = told || strings.Contains(check.Text, "has lost what it had acknowledged (generation 2)")
	}
	if !told {
		t.Errorf("doctor does not tell of the loss: %+v", doctor.Checks)
	}

	// The agent works with a fence that the store lost: it is told to stop, and the
	// task is offered again only after that.
	two.AwaitRequest(agenttest.Cancel, 1)
	again := two.AwaitStart(3)
	if again.QueueID != begunAfter || again.Fence <= two.Executions()[1].Fence {
		t.Errorf("%+v follows %+v", again, two.Executions()[1])
	}
	two.Finish(again.TaskID, agenttest.End{})
	c.ends(all[0], begunAfter, signalbox.Completed)
	c.ends(all[1], ended, signalbox.Completed) // the agent was asked and still has the result

	next := c.eventually(all[1], "one")
	one.Finish(first.TaskID, agenttest.End{})
	c.ends(all[1], runsOn, signalbox.Completed)
	run := one.AwaitStart(2)
	one.Finish(run.TaskID, agenttest.End{})
	c.ends(all[0], next, signalbox.Completed)
	if err := server.Restart("immediate"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{runsOn, ended, begunAfter, next} {
		c.ends(all[0], id, signalbox.Completed)
	}
	if over := append(one.Overlaps(), two.Overlaps()...); len(over) > 0 {
		t.Errorf("overlaps: %v", over)
	}
	if len(one.Executions()) != 2 || len(two.Executions()) != 3 {
		t.Errorf("%d and %d executions", len(one.Executions()), len(two.Executions()))
	}
}
