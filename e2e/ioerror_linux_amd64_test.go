package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Every write and every sync in a director's data folder fails once, from the
// first one in a new folder through whole tasks: with an I/O error or because
// the disk is full, for a moment or permanently. The director reports the
// failure to its callers or when it exits; no acknowledged task is lost; and
// restarted on a working disk it continues.

// ioFault is how calls fail.
type ioFault struct {
	name  string
	errno syscall.Errno
	times int
}

const forGood = 1 << 30

var ioFaults = []ioFault{
	{"EIO once", syscall.EIO, 1},
	{"EIO from then on", syscall.EIO, forGood},
	{"ENOSPC once", syscall.ENOSPC, 1},
	{"ENOSPC from then on", syscall.ENOSPC, forGood},
}

// ioTasks is the number of tasks in a run; a task makes four commits.
const ioTasks = 3

func TestEveryWriteAndSyncFails(t *testing.T) {
	b := newBox(t)
	rng := rand.New(rand.NewPCG(seedOf(t), 5))
	free := newIORun(b, 0, ioFaults[0])
	free.run()
	if free.failed() > 0 || len(free.kept) != ioTasks {
		t.Fatalf("without a fault: %d calls failed, %d tasks were acknowledged", free.failed(), len(free.kept))
	}
	all := free.calls()
	t.Logf("%d writes and syncs without a fault", all)
	if all < 20 {
		t.Fatalf("only %d calls were seen: the director did not work", all)
	}
	for kind, fault := range ioFaults {
		list := ioIndexes(rng, kind, all)
		t.Run(fault.name, func(t *testing.T) { failEach(newBox(t), fault, list, all) })
	}
}

// failEach makes a run for each call that fails.
func failEach(b *box, fault ioFault, list []int, all int) {
	struck, said := 0, map[string]int{}
	for _, n := range list {
		r := newIORun(b, n, fault)
		r.run()
		if r.failed() > 0 {
			struck++
		} else if n < all*3/4 {
			b.t.Errorf("call %d of about %d was not failed", n, all)
		}
		if b.t.Failed() {
			b.t.Fatalf("%s at call %d of about %d:\n%s", fault.name, n, all, r.report())
		}
		said[r.said]++
		os.RemoveAll(r.folder)
	}
	b.t.Logf("%d runs, %d of them with a fault; how the director took it: %v", len(list), struck, said)
}

// ioIndexes are the calls that fail in turn: all, and some more, because runs
// differ; in the short form one, near the beginning for some faults and during
// the work for others.
func ioIndexes(rng *rand.Rand, kind, all int) (list []int) {
	if !soak.On() {
		return []int{1 + (kind+1)/2%2*all/2 + rng.IntN(all/4)}
	}
	for n := 1; n <= all+all/10; n++ {
		list = append(list, n)
	}
	return list
}

// ioRun is a director with a fault, and the next one without.
type ioRun struct {
	*box
	fault   ioFault
	nth     int
	folder  string
	url     string
	line    []string // of the director
	agent   *process
	kept    []string // acknowledged
	refused int      // number of submits
	said    string   // the director's reaction to the fault
}

func newIORun(b *box, nth int, fault ioFault) *ioRun {
	r := &ioRun{box: b, fault: fault, nth: nth, folder: filepath.Join(b.root, fmt.Sprintf("run-%d", nth))}
	if err := os.MkdirAll(r.data(), 0o700); err != nil {
		b.t.Fatal(err)
	}
	addr, at := freePort(b.t), freePort(b.t)
	r.url = "http://" + addr
	config := b.file(filepath.Join(r.folder, "c.yaml"), "discover: off\nagents:\n  - {name: a, kind: fake, url: 'http://"+at+"'}\n", 0o600)
	r.line = []string{"director", "--addr", addr, "--data", r.data(), "--config", config}
	r.agent = launchProgram(b.t, self(b.t), b.work, b.environ(laneAgentEnv+"="+at+" "+r.log()+" fenced"))
	return r
}

func self(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *ioRun) data() string { return filepath.Join(r.folder, "data") }
func (r *ioRun) log() string  { return filepath.Join(r.folder, "agent.jsonl") }

func (r *ioRun) report() string {
	text, err := os.ReadFile(filepath.Join(r.folder, "report"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (r *ioRun) calls() int  { return strings.Count(r.report(), "\n") }
func (r *ioRun) failed() int { return strings.Count(r.report(), " failed ") }

func (r *ioRun) run() {
	r.t.Helper()
	defer r.agent.kill()
	spec := fmt.Sprintf("%s=%d %d %d %s %s", ioFaultEnv, r.nth, r.fault.times, int(r.fault.errno), r.data(), filepath.Join(r.folder, "report"))
	if r.nth == 0 {
		spec = fmt.Sprintf("%s=%d %d %d %s %s", ioFaultEnv, forGood, 1, int(r.fault.errno), r.data(), filepath.Join(r.folder, "report"))
	}
	director := launchProgram(r.t, self(r.t), r.work, r.environ(spec), append([]string{binary}, r.line...)...)
	if director.printed("http://") {
		r.labour(director)
	}
	r.wantClear(director)
	director.kill()
	r.wantAllKept()
}

// labour submits tasks, and waits until they have ended or the director has
// exited.
func (r *ioRun) labour(director *process) {
	r.t.Helper()
	for n := range ioTasks {
		got, err := submitOnce(r.box, r.url, fmt.Sprintf("run 1ms task-%d", n))
		var answer *client.Error
		switch {
		case err == nil:
			r.kept = append(r.kept, got.QueueID)
		case errors.As(err, &answer) && answer.Status >= 500 && answer.Error() != "":
			r.refused++
		case !client.IsUnreachable(err):
			r.t.Errorf("a disk that fails was answered with: %v", err)
		}
	}
	patience := long
	if r.nth > 0 {
		patience = 2 * time.Second // the next director does the rest
	}
	c := r.client(r.url)
	testkit.Within(patience, func() bool {
		return director.over() || !slices.ContainsFunc(r.kept, func(id string) bool {
			task, err := c.Task(r.ctx(), id)
			return err != nil || !signalbox.State(task.State).Terminal()
		})
	})
}

// wantClear: a director that exited has logged the reason.
func (r *ioRun) wantClear(director *process) {
	r.t.Helper()
	if !director.over() {
		r.said = "went on"
		if r.refused > 0 {
			r.said = "refused, and went on"
		}
		return
	}
	said := director.err.text()
	r.said = "ended"
	if len(r.kept) == 0 {
		r.said = "ended before it acknowledged anything"
	}
	if r.failed() == 0 || director.code == 0 {
		r.t.Errorf("it ended with %d by itself:\n%s", director.code, tail(said))
	}
	for _, word := range []string{"disk", "space", "input/output error"} {
		if strings.Contains(said, word) {
			return
		}
	}
	r.t.Errorf("it ended with %d and does not say that the disk is to blame:\n%s", director.code, tail(said))
}

// wantAllKept: restarted on a working disk, the director ends every
// acknowledged task exactly once, and accepts the next.
func (r *ioRun) wantAllKept() {
	r.t.Helper()
	director := r.start(r.line...)
	if !director.printed("http://") {
		r.t.Fatalf("it does not start again:\n%s", tail(director.err.text()))
	}
	defer director.kill()
	c := r.client(r.url)
	r.completed(c, r.submit(c, api.SubmitRequest{Prompt: "run 1ms next"}))
	for _, id := range r.kept {
		if task := r.end(c, id); task.State != "completed" {
			r.t.Errorf("%s ended as %s (%s): %s", id, task.State, task.Reason, task.Message)
		}
	}
	if queue, err := c.Queue(r.ctx(), client.QueueOptions{}); err != nil || queue.DispatchedCount != 0 {
		r.t.Errorf("a task never ends: %+v, %v", queue, err)
	}
	lines, runs := executions(r.t, r.log()), map[string]int{}
	for _, id := range starts(lines) {
		runs[id]++
	}
	for _, id := range r.kept {
		if runs[id] != 1 {
			r.t.Errorf("%s was executed %d times", id, runs[id])
		}
	}
	for _, fault := range overlaps(lines, nil) {
		r.t.Error(fault)
	}
}
