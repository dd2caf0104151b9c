package queuetools_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// worked submits a task and completes it with changes in a worktree.
func (y *fixture) worked(c *modelClient, more args) taskSaid {
	y.t.Helper()
	var task, end taskSaid
	a := args{"prompt": "p", "agent": "coder"}
	for name, value := range more {
		a[name] = value
	}
	c.call("submit_task", a, &task)
	testkit.Wait(y.t, "it runs", func() bool { return y.task(task.QueueID).State == signalbox.Working })
	y.agents["coder"].Finish(task.QueueID, agenttest.End{Changes: &api.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1}})
	c.call("task_status", args{"task_id": task.QueueID, "wait_seconds": 60}, &end)
	if end.State != "completed" {
		y.t.Fatalf("%+v", end)
	}
	return end
}

// A model lands work, follows the landing, and cancels one.
func TestQueueToolsLandWork(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(modernEra)
	var status, got taskSaid
	task := y.worked(c, nil)
	if task.Landing != nil || task.Next != "" {
		t.Errorf("%+v", task)
	}
	text := c.call("land_task", args{"task_id": task.QueueID, "onto": "release", "method": "squash", "fast_forward": true}, &got).text
	if got.Landing.State != "queued" || !strings.HasPrefix(text, task.QueueID+": it is to land on release.") || !strings.Contains(text, "task_status") {
		t.Errorf("%+v %s", got, text)
	}
	if l := y.task(task.QueueID).Landing; l.Method != "squash" || !l.FastForward || l.By == "" {
		t.Errorf("%+v", l)
	}
	text = c.call("task_status", args{"task_id": task.QueueID}, &status).text
	if status.Landing == nil || status.Landing.Onto != "release" || !strings.Contains(text, "Landing: it is to land on release.\nIts work is on its way") {
		t.Errorf("%+v %s", status, text)
	}
	c.fails("land_task", args{"task_id": task.QueueID, "onto": "main"}, signalbox.CodeConflict)
	c.fails("land_task", args{"task_id": task.QueueID, "onto": "main", "drop": true}, signalbox.CodeValidation)
	c.call("land_task", args{"task_id": task.QueueID, "drop": true}, &got)
	text = c.call("task_status", args{"task_id": task.QueueID}, &status).text
	if got.Landing.State != "dropped" || status.Landing.State != "dropped" || strings.Contains(text, "on its way") {
		t.Errorf("%+v %s", got, text)
	}
	for _, bad := range []args{{"task_id": task.QueueID, "onto": "-x"}, {"task_id": task.QueueID, "onto": 7}, {"task_id": task.QueueID, "method": "merge"}} {
		c.fails("land_task", bad, signalbox.CodeValidation)
	}
	c.fails("land_task", args{"task_id": "queue-" + strings.Repeat("0", 26)}, signalbox.CodeNotFound)

	wanted := y.worked(c, args{"land": "main", "land_method": "rebase", "fast_forward": true, "checks": []args{{"name": "test", "run": "make test", "timeout_seconds": 60}}, "check_retries": 1})
	if wanted.Landing == nil || wanted.Landing.State != "queued" || wanted.Landing.Onto != "main" {
		t.Errorf("%+v", wanted)
	}
	r, err := y.store.Request(t.Context(), wanted.QueueID)
	if err != nil || len(r.Checking.Checks) != 1 || r.Checking.Checks[0] != (signalbox.Check{Name: "test", Run: "make test", TimeoutSeconds: 60}) || *r.Checking.Retries != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	c.fails("submit_task", args{"prompt": "p", "land_method": "squash"}, signalbox.CodeValidation)
}

// A caller with the scope submit can land its own work; landing other callers' work
// needs the scope cancel.
func TestQueueToolsLandOnlyWithRights(t *testing.T) {
	y := newFixture(t, options{token: apitest.Secret})
	mine := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "one", Scopes: []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeSubmit, signalbox.ScopeRead}}))...)
	task := y.worked(mine, nil)
	other := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "two", Scopes: []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeSubmit, signalbox.ScopeRead}}))...)
	other.fails("land_task", args{"task_id": task.QueueID}, signalbox.CodeForbidden)
	mine.call("land_task", args{"task_id": task.QueueID}, nil)
	other.fails("land_task", args{"task_id": task.QueueID, "drop": true}, signalbox.CodeForbidden)
	lead := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "lead", Scopes: []signalbox.Scope{signalbox.ScopeTool, signalbox.ScopeCancel}}))...)
	lead.call("land_task", args{"task_id": task.QueueID, "drop": true}, nil)
	var checked taskSaid
	mine.call("submit_task", args{"prompt": "p", "agent": "coder", "checks": []args{{"name": "test", "run": "make"}}}, &checked)
	if r, err := y.store.Request(t.Context(), checked.QueueID); err != nil || r.EnvBy != signalbox.EnvByCaller {
		t.Errorf("the agent is not told whose checks they are: %+v, %v", r, err)
	}
}
