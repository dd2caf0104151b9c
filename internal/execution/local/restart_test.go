package local_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// A task that was being cancelled ends as cancelled, whatever its tool's policy.
func TestRestartWhileCancelling(t *testing.T) {
	for name, policy := range map[string]gateway.RestartPolicy{"default": {}, "fail": {FailPending: true}, "requeue": {RequeueRunning: true}} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, async("tool", func(tool *gateway.Tool) { tool.Restart = policy }))
			begun, goOn := make(chan struct{}, 1), make(chan struct{})
			h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) { // it ignores its context
				begun <- struct{}{}
				<-goOn
				return said("done"), nil
			})
			x := h.open()
			id := h.submit(x, "tool")
			got(h, begun)
			v, err := x.Cancel(t.Context(), id, "me")
			h.must(err)
			if v.Task.State != signalbox.Cancelling {
				t.Errorf("%s", v.Task.State)
			}
			h.engine = h.newEngine(engine.Options{})
			h.open()
			close(goOn)
			if task := h.reaches(id, signalbox.Cancelled); task.Reason != signalbox.ReasonCancelled || !strings.HasPrefix(task.Message, "cancelled by me") {
				t.Errorf("%s: %q", task.Reason, task.Message)
			}
			h.slots(0)
		})
	}
}

// The leftover processes of a dead director's run are killed before its task is handled, whatever their
// session and parent.
func TestIncidentStartEndsLeftoverProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the environment of other processes is read on Linux alone")
	}
	h := newFixture(t, async("tool", func(tool *gateway.Tool) { tool.Kind, tool.Restart.RequeueRunning = gateway.KindCommand, true }))
	goOn, pids, dead := make(chan struct{}), make(chan int, 1), make(chan struct{})
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		cmd := exec.Command("sleep", "600")
		cmd.Env = append(os.Environ(), proc.MarkVar+"="+c.Mark)
		cmd.SysProcAttr = ownSession()
		if err := cmd.Start(); err != nil {
			return gateway.Result{}, err
		}
		go func() {
			_ = cmd.Wait() // it is killed
			close(dead)
		}()
		pids <- cmd.Process.Pid
		<-goOn
		return said("done"), nil
	})
	x := h.open()
	id := h.submit(x, "tool")
	pid := got(h, pids)
	h.engine = h.newEngine(engine.Options{})
	h.options.Concurrent = 1
	h.must(h.engine.Pause(t.Context(), "", "", "", time.Time{}))
	h.open()
	got(h, dead)
	if proc.Identify(pid).Start != 0 {
		t.Error("it lives")
	}
	if task := h.task(id); task.State != signalbox.Pending || task.Attempts != 1 {
		t.Errorf("%s, %d attempts", task.State, task.Attempts)
	}
	close(goOn)
}

// A director that stops ends a call that is not a task yet, and says why.
func TestStopEndsCalls(t *testing.T) {
	h, _ := newQueueFixture(t, openStore(t))
	x := h.open()
	waits := h.callOr(t.Context(), x, call("tool"), time.Hour)
	h.stands(1)
	x.Stop()
	if o := got(h, waits); signalbox.CodeOf(o.err) != signalbox.CodeUnavailable {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	later := h.callOr(ctx, x, call("tool"), 0) // a later one is a plain call
	h.stands(1)
	cancel()
	if o := got(h, later); o.task != nil || o.err == nil {
		t.Errorf("%+v", o)
	}
}
