//go:build linux

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testdisk"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Full disks of parts other than the director's store.

// An agent with a full disk ends its runs with the reason, accepts no task that
// it could not record, which costs the task no attempt, and continues when
// there is space again.
func TestDiskFullOfAnAgent(t *testing.T) {
	disk := testdisk.New(t, "size=8m,mode=0755")
	b := newBox(t)
	director := b.director()
	gate, command := b.gated()
	b.agent("full", director.url, append([]string{"--data", filepath.Join(disk, "agent")}, command...)...)
	c := b.client(director.url)
	running := gate.holdWith(c, "as the disk fills up")
	balloon := filepath.Join(disk, "balloon")
	testdisk.Fill(t, balloon)
	gate.open()
	if task := b.end(c, running); task.State != "completed" || !strings.Contains(task.Result.Output, "did gate") {
		t.Errorf("what ran ended as %s (%s): %s", task.State, task.Reason, task.Message)
	}
	next := b.submit(c, prompt("with a full disk"))
	b.until("the agent refuses it, and says why", func() bool {
		task, err := c.Task(b.ctx(), next)
		if err == nil && task.State != "pending" && task.State != "dispatching" {
			t.Fatalf("it is %s (%s): %s", task.State, task.Reason, task.Message)
		}
		return err == nil && strings.Contains(task.LastError, "no space left")
	})
	b.untilState(c, "full", "closed")
	if task, err := c.Task(b.ctx(), next); err != nil || task.Attempts != 0 {
		t.Errorf("the task paid %d attempts for the agent's disk: %v", task.Attempts, err)
	}
	if err := os.Remove(balloon); err != nil {
		t.Fatal(err)
	}
	b.completed(c, next)
	b.executedOnce(running)
	b.executedOnce(next)
}

// One of two agents has a full disk: every task completes at the other, and
// health names the failing agent within 5 s.
func TestDiskFullOfOneAgentOfTwo(t *testing.T) {
	t.Run("called", func(t *testing.T) { diskFullOfOneOfTwo(t) })
	t.Run("pulling", func(t *testing.T) { diskFullOfOneOfTwo(t, "--pull") })
}

func diskFullOfOneOfTwo(t *testing.T, flags ...string) {
	disk := testdisk.New(t, "size=8m,mode=0755")
	b := newBox(t)
	director := b.director()
	c := b.client(director.url)
	b.agent("a-full", director.url, append(flags, "--data", filepath.Join(disk, "agent"), "--", "/bin/echo", "{prompt}")...)
	b.agent("b-well", director.url, append(flags, "--", "/bin/echo", "{prompt}")...)
	b.untilState(c, "a-full", "idle")
	b.untilState(c, "b-well", "idle")
	testdisk.Fill(t, filepath.Join(disk, "balloon"))
	begun := time.Now()
	var ids []string
	for i := range 20 {
		ids = append(ids, b.submit(c, prompt(fmt.Sprintf("task %d", i))))
	}
	b.until("health names the sick agent", func() bool {
		h, err := c.Status(b.ctx())
		return err == nil && slices.ContainsFunc(h.Health.Attention, func(a api.Attention) bool {
			return a.Subject == "a-full" && a.Kind == "agent_closed" && strings.Contains(a.Text, "no space left")
		})
	})
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("health named the sick agent after %s, want within 5s", took)
	}
	for _, id := range ids {
		if task := b.completed(c, id); task.Agent != "b-well" || task.Attempts != 0 {
			t.Errorf("%s completed at %s after %d failed attempts", id, task.Agent, task.Attempts)
		}
	}
}

// A tool's task that ends while nothing can be stored is not forgotten and
// not run again: its end is stored once there is space.
func TestDiskFullAsAToolsTaskEnds(t *testing.T) {
	disk := testdisk.New(t, "size=8m,mode=0755")
	m := newBox(t)
	m.data = filepath.Join(disk, "data")
	b := commandBoxIn(m, rlimits, object{"wait": object{
		"sh": `echo begun >>"$DIR/begun"; until [ -e "$DIR/open" ]; do sleep 0.02; done; echo did it`,
	}})
	b.start()
	id := b.call("wait", "{}")
	begun := func() int {
		text, _ := os.ReadFile(filepath.Join(b.dir, "begun"))
		return strings.Count(string(text), "\n")
	}
	b.until("it runs", func() bool { return begun() == 1 })
	balloon := filepath.Join(disk, "balloon")
	testdisk.Fill(t, balloon)
	// A log that has grown has free space within; this fills that too.
	refused := false
	for n := 0; n < 3000 && !refused && !b.d.over(); n++ {
		_, err := submitOnce(b.box, b.d.url, fmt.Sprintf("task %d %s", n, strings.Repeat("x", 4000)))
		refused = err != nil
	}
	b.open()
	b.d.says("end of a tool task not stored, trying again")
	if task, err := b.c.ToolTask(b.ctx(), id); err != nil || task.Status != "running" {
		t.Errorf("it is %s (%s): %v", task.Status, task.Message, err)
	}
	if err := os.Remove(balloon); err != nil {
		t.Fatal(err)
	}
	if b.d.over() {
		t.Fatalf("a full disk ended the director:\n%s", tail(b.d.err.text()))
	}
	b.did(id, "did it\n")
	if n := begun(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestDiskFullOfPostgres(t *testing.T) {
	disk := testdisk.New(t, "size=128m,mode=0755")
	server := testserver.NewPostgres(t, testserver.PostgresOptions{
		Folder: disk, Settings: map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB", "shared_buffers": "16MB"},
	})
	fullServer(t, disk, server.Database(t), server)
}

func TestDiskFullOfRedis(t *testing.T) {
	disk := testdisk.New(t, "size=16m,mode=0755")
	server := testserver.NewRedis(t, testserver.RedisOptions{Folder: disk})
	fullServer(t, disk, server.URL(), server)
}

// fullServer: if the disk of the store's server is full, a director refuses
// tasks with the reason. Acknowledged tasks still exist when the server has
// space and runs again, which the director notices by itself.
func fullServer(t *testing.T, disk, store string, server fireServer) {
	b := newBox(t)
	b.vars["SIGNALBOX_STORE"], b.vars["SIGNALBOX_SECRET_KEY"] = store, testKey
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "100000"
	director := b.director()
	c := b.client(director.url)
	kept := []string{b.submit(c, prompt("before the disk is full"))}
	balloon := filepath.Join(disk, "balloon")
	testdisk.Fill(t, balloon)
	var refusal error
	for n := 0; n < 10_000 && refusal == nil; n++ {
		got, err := submitOnce(b, director.url, fmt.Sprintf("task %d %s", n, strings.Repeat("x", 20_000)))
		if refusal = err; err == nil {
			kept = append(kept, got.QueueID)
		}
	}
	if answer := (*client.Error)(nil); !errors.As(refusal, &answer) || answer.Status < 500 {
		t.Errorf("a full disk of the server was answered with %v", refusal)
	}
	t.Logf("%d were acknowledged, then: %v", len(kept), refusal)
	if err := os.Remove(balloon); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil { // it may have exited by itself
		t.Fatal(err)
	}
	b.until("the director is ready again", func() bool {
		resp, err := http.Get(director.url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	kept = append(kept, b.submit(c, prompt("there is space again")))
	for _, id := range kept {
		if _, err := c.Task(b.ctx(), id); err != nil {
			t.Errorf("%s was acknowledged: %v", id, err)
		}
	}
}
