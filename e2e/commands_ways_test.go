package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// A sandbox lets a run read and write exactly what its tool configures.
func TestSandboxOfCommands(t *testing.T) {
	onPath(t, "bwrap")
	outer := newBox(t)
	outer.withSystemPath()
	secret := outer.file("private/key", "private-key", 0o600)
	cwd := filepath.Dir(outer.file("cwd/file", "", 0o600))
	shared := outer.file("shared/open", "open", 0o600)
	out := filepath.Join(outer.root, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	script := "cat " + secret + "; cat " + shared + "; echo new >" + out + "/new && echo wrote; echo new >" + filepath.Dir(shared) + "/new && echo leaked; cat /proc/net/dev | grep -c : ; true"
	sandbox := func(mode, kind string) object {
		s := object{"mode": mode, "read": []string{filepath.Dir(shared)}, "write": []string{out}}
		if kind != "" {
			s["kind"] = kind
		}
		return s
	}
	b := commandBoxIn(outer, autoLimits, object{
		"inside":  object{"sh": script, "cwd": cwd, "sandbox": sandbox("required", "bubblewrap")},
		"hangs":   object{"sh": "setsid sh -c 'sleep 1000 & sleep 1000' & echo ready; sleep 1000", "sandbox": sandbox("required", "bubblewrap")},
		"bounded": object{"sh": "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done", "sandbox": sandbox("required", ""), "limits": object{"memory": "64MiB"}},
	})
	b.start()
	task := b.ended(b.call("inside", `{}`))
	text := said(task)
	if task.Status != "completed" || strings.Contains(text, "private-key") || !strings.HasPrefix(text, "openwrote\n1\n") || strings.Contains(text, "leaked") {
		t.Errorf("%s: %s %s", task.Status, failure(task), text)
	}
	if got := b.read(out + "/new"); got != "new\n" {
		t.Errorf("%q", got)
	}
	b.fails("hangs", fault{cancel: true, status: "cancelled"})
	if task := b.ended(b.call("bounded", `{}`)); task.Status != "failed" || b.keeps("memory") && !strings.Contains(failure(task), "limits.memory") {
		t.Errorf("%s: %s", task.Status, failure(task))
	}
	b.noSlotTaken()
}

// If a required sandbox is not available, the run does not start.
func TestRequiredSandboxFailsClosed(t *testing.T) {
	b := newCommandBox(t, autoLimits, object{
		"inside":  object{"sh": "echo ran >>$DIR/ran", "sandbox": object{"mode": "required", "kind": "bubblewrap"}},
		"if_able": object{"sh": "echo ran", "sandbox": object{"mode": "auto", "kind": "bubblewrap"}},
	})
	b.start() // its PATH has no bwrap
	if task := b.ended(b.call("inside", `{}`)); task.Status != "failed" || !strings.Contains(failure(task), "sandbox") || !strings.Contains(failure(task), "bubblewrap") {
		t.Errorf("%s: %q", task.Status, failure(task))
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("it ran")
	}
	b.did(b.call("if_able", `{}`), "ran\n")
	b.d.says("bubblewrap")
	if said := b.doctorSays("sandbox"); !strings.Contains(said, "inside") {
		t.Errorf("doctor says %q", said)
	}
}

// A tool's task can be followed, listed, retried, and found again by its key.
func TestWaysOfToolTasks(t *testing.T) {
	b := newCommandBox(t, autoLimits, object{
		"gated": object{"sh": "echo one; read x <$DIR/gate; echo two; echo three >&2"},
		"note":  object{"command": "note"},
		"fails": object{"sh": "[ -e $DIR/open ] && echo fine || exit 3"},
	})
	b.start()
	g := b.gateAt(filepath.Join(b.dir, "gate"))
	d := func(args ...string) []string { return append(args, "--director", b.d.url) }

	id := b.call("gated", `{}`)
	logs := b.box.start(d("logs", id, "-f")...)
	logs.prints("one")
	if strings.Contains(logs.out.text(), "two") {
		t.Error("it has printed two, and stands at the gate")
	}
	g.arrived()
	g.open()
	if code := logs.exits(); code != 0 || !strings.Contains(logs.out.text(), "two\n") || !strings.Contains(logs.out.text(), "three\n") {
		t.Errorf("logs -f: exit code %d: %s%s", code, logs.out.text(), logs.err.text())
	}
	b.did(id, "one\ntwo\nstderr:\nthree\n")

	args, key := api.NewToolTask{Arguments: json.RawMessage(`{"n": 1}`)}, client.ToolTaskOptions{IdempotencyKey: "once-only"}
	first, err := b.c.CreateToolTask(b.ctx(), "note", args, key)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.c.CreateToolTask(b.ctx(), "note", args, key)
	if err != nil || again.ID != first.ID {
		t.Errorf("the same key makes %s and %s, %v", first.ID, again.ID, err)
	}
	args.Arguments = json.RawMessage(`{"n": 2}`)
	if _, err := b.c.CreateToolTask(b.ctx(), "note", args, key); client.Code(err) != "idempotency_conflict" {
		t.Errorf("the same key for another call: %v", err)
	}
	b.did(first.ID, "did "+first.ID+"\n")
	if n := b.runs()[first.ID]; n != 1 {
		t.Errorf("it began %d times", n)
	}

	failed := b.call("fails", `{}`)
	if task := b.ended(failed); failure(task) != "command exited with code 3" || task.ExitCode == nil || *task.ExitCode != 3 {
		t.Errorf("%+v", task)
	}
	b.open()
	retried, err := b.c.Retry(b.ctx(), failed, api.RetryRequest{}, client.SubmitOptions{})
	if err != nil || retried.QueueID == failed {
		t.Fatalf("%+v, %v", retried, err)
	}
	b.did(retried.QueueID, "fine\n")

	page, err := b.c.ToolTasks(b.ctx(), client.ToolTasksOptions{Tool: "fails"})
	if err != nil || len(page.Tasks) != 2 || page.Tasks[0].ID != retried.QueueID || page.Tasks[1].ID != failed {
		t.Errorf("%+v, %v", page, err)
	}
	if out := b.want(0, d("tools", "tasks", "--status", "failed")...).out; !strings.Contains(out, "fails") || strings.Contains(out, "gated") {
		t.Errorf("%s", out)
	}
	if got := b.cli(d("tools", "call", "fails", "{}", "--task", "--wait")...); got.code != 0 || !strings.Contains(got.out, "fine") {
		t.Errorf("%+v", got)
	}
	if got := b.cli(d("status", id)...); got.code != 0 || !strings.Contains(got.out, "gated") || !strings.Contains(got.out, "completed") {
		t.Errorf("%+v", got)
	}
}

func (b *commandBox) gateAt(path string) *gate {
	b.t.Helper()
	g := b.newGate()
	if err := os.Rename(g.fifo, path); err != nil {
		b.t.Fatal(err)
	}
	g.fifo = path
	return g
}

// Results can be read across restarts for as long as the queue keeps them, and
// no longer. The minimum retention is a minute, so the end is only tested with
// SIGNALBOX_SOAK=1.
func TestResultsAreKeptAndPruned(t *testing.T) {
	b := newCommandBox(t, autoLimits, object{"note": object{"command": "note"}})
	config := b.read(filepath.Join(b.root, "signalbox.yaml")) + "queue:\n  retention: 1m\n"
	b.file("signalbox.yaml", config, 0o600)
	b.start()
	id := b.call("note", `{}`)
	b.did(id, "did "+id+"\n")
	for _, end := range []func(*process){(*process).stop, (*process).kill} {
		end(b.d)
		b.start()
		b.did(id, "did "+id+"\n")
	}
	if !soak.On() {
		return
	}
	time.Sleep(time.Minute)
	b.until("it is pruned", func() bool {
		_, err := b.c.ToolTask(b.ctx(), id)
		return client.Code(err) == "not_found"
	})
	next := b.call("note", `{}`)
	b.did(next, "did "+next+"\n")
}
