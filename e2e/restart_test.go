package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Without a grace period a task is left to its agent; the next up takes over
// both.
func TestTermLeavesATaskToItsAgent(t *testing.T) {
	b := newBox(t)
	gate := b.fakeClaude()
	addr := freePort(t)
	up := b.up("--addr", addr, "--grace", "0s")
	c := b.client(up.url)
	id := gate.holdWith(c, "keeper")
	began := time.Now()
	up.stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("with no grace the stop took %s", took)
	}
	if !strings.Contains(up.err.text(), "goes on with its task") {
		t.Errorf("nothing is said about the agent that goes on:\n%s", up.err.text())
	}
	again := b.up("--addr", addr)
	again.says("agent=taken_up")
	gate.open()
	if task := b.completed(c, id); task.Result.Output != "did gate keeper" || task.Attempts != 0 {
		t.Errorf("%+v %+v", task, task.Result)
	}
	b.executedOnce(id)
	again.stop()
	b.until("the end of all processes", func() bool { return len(b.living()) == 0 })
}

// If a task ends while no director runs, the agent keeps its result.
func TestATaskThatEndsWhileTheDirectorIsDown(t *testing.T) {
	b := newBox(t)
	director := b.director("--addr", freePort(t), "--grace", "0s")
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "orphan")
	director.stop()
	gate.open()
	b.until("the end of the execution", func() bool {
		lines := executions(t, b.execLog())
		return len(lines) > 0 && lines[len(lines)-1].Event == "end"
	})
	b.director("--addr", strings.TrimPrefix(director.url, "http://"))
	if task := b.completed(c, id); task.Result.Output != "at the gate\ndid gate orphan\n" {
		t.Errorf("output %q", task.Result.Output)
	}
	b.executedOnce(id)
}

// With a grace period a stopping director waits for running tasks, starts no
// new ones, and keeps tasks that are submitted meanwhile.
func TestTermWaitsForRunningTasks(t *testing.T) {
	b := newBox(t)
	director := b.director("--addr", freePort(t), "--grace", "10m")
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	id := gate.holdWith(c, "slow")
	director.signal(syscall.SIGTERM)
	director.says("stopping: no new claims")
	if status, err := c.Status(b.ctx()); err != nil || status.State != "draining" {
		t.Errorf("status while it drains: %+v, %v", status, err)
	}
	if ready, err := c.Ready(b.ctx()); err == nil {
		t.Errorf("it is ready while it drains: %+v", ready)
	}
	late := b.submit(c, prompt("submitted during the drain"))
	gate.open()
	if code := director.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.director("--addr", strings.TrimPrefix(director.url, "http://"))
	b.completed(c, id)
	if task := b.completed(c, late); task.Attempts != 0 {
		t.Errorf("%+v", task)
	}
	b.executedOnce(id)
	b.executedOnce(late)
}

func TestASecondSignalEndsTheWait(t *testing.T) {
	b := newBox(t)
	director := b.director("--grace", "10m")
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	id := gate.holdWith(b.client(director.url), "slow")
	director.signal(syscall.SIGTERM)
	director.says("stopping: no new claims")
	director.signal(syscall.SIGTERM)
	if code := director.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(director.err.text(), "left to their agents") {
		t.Errorf("nothing is said about %s, which goes on:\n%s", id, director.err.text())
	}
}

// on_shutdown: stop ends the running tasks; no process of theirs survives.
func TestOnShutdownStop(t *testing.T) {
	b := newBox(t)
	gate := b.fakeClaude()
	addr := freePort(t)
	up := b.up("--addr", addr, "--grace", "0s", "--on-shutdown", "stop")
	c := b.client(up.url)
	id := gate.holdWith(c, "unwanted")
	up.stop()
	b.until("the end of all processes", func() bool { return len(b.living()) == 0 })
	b.up("--addr", addr)
	if task := b.end(c, id); task.State != "cancelled" || !strings.Contains(task.Message, "shutdown") {
		t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
	}
}

// kill -9 of up leaves its agents and their tasks running; the next up takes
// over both, even if it starts at another address.
func TestUpIsKilled(t *testing.T) {
	b := newBox(t)
	gate := b.fakeClaude()
	up := b.up()
	c := b.client(up.url)
	id := gate.holdWith(c, "survivor")
	waiting := b.submit(c, prompt("next"))
	up.kill()
	again := b.up()
	again.says("agent=taken_up")
	c = b.client(again.url)
	if task, err := c.Task(b.ctx(), id); err != nil || task.State != "working" {
		t.Errorf("after the restart: %+v, %v", task, err)
	}
	gate.open()
	b.completed(c, id)
	b.completed(c, waiting)
	b.executedOnce(id)
	b.executedOnce(waiting)
	again.stop()
	b.until("the end of all processes", func() bool { return len(b.living()) == 0 })
}

// up restarts its agents.
func TestUpRestartsItsAgents(t *testing.T) {
	b := newBox(t)
	gate := b.fakeClaude()
	up := b.up()
	c := b.client(up.url)
	lost := b.submit(c, prompt("gate lost"))
	gate.arrived()
	again := b.submit(c, api.SubmitRequest{Prompt: "sent to the next one"})
	file := parse[struct{ PID int }](t, b.read(b.data+"/agents/claude/agent.json"))
	if err := syscall.Kill(file.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if task := b.end(c, lost); task.State != "failed" || task.Reason != "interrupted" || task.Message == "" {
		t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
	}
	b.completed(c, again)
	if !strings.Contains(up.err.text(), "agent=ended name=claude restart=true") {
		t.Errorf("the log does not mention it:\n%s", up.err.text())
	}
}

// An agent that is killed in the middle of a task reports that after its
// restart; the task runs again if it asked for that.
func TestAnAgentIsKilledInTheMiddle(t *testing.T) {
	for onLost, want := range map[string]string{"fail": "failed", "requeue": "completed"} {
		t.Run(onLost, func(t *testing.T) {
			b := newBox(t)
			director := b.director()
			gate, command := b.gated()
			line := append([]string{"--addr", freePort(t)}, command...)
			agent := b.agent("worker", director.url, line...)
			c := b.client(director.url)
			id := b.submit(c, api.SubmitRequest{Prompt: "gate " + onLost, OnLost: onLost})
			gate.arrived()
			b.until("the start in the agent's own log", func() bool { return len(executions(t, b.execLog())) == 1 })
			agent.kill()
			gate.held.Close()
			b.agent("worker", director.url, line...)
			if onLost == "requeue" {
				gate.arrived()
				gate.open()
			}
			task := b.end(c, id)
			if task.State != want || (want == "failed" && task.Reason != "interrupted") {
				t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
			}
			lines := executions(t, b.execLog())
			fences := []int64{}
			for _, l := range lines {
				if l.Event == "start" {
					fences = append(fences, l.Fence)
				}
			}
			if onLost == "fail" && len(fences) != 1 || onLost == "requeue" && (len(fences) != 2 || fences[1] <= fences[0]) {
				t.Errorf("executed with the fences %v", fences)
			}
		})
	}
}

// Agent and director find each other in either order, and again after a
// disconnection.
func TestEitherMayComeFirst(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	agent := b.serve(b.agentLine("early", "http://"+addr, nil)...)
	agent.says("director not reached")
	director := b.director("--addr", addr)
	c := b.client(director.url)
	b.completed(c, b.submit(c, prompt("sleep 1ms")))
	director.stop()
	agent.says("director not reached")
	b.director("--addr", addr)
	b.completed(c, b.submit(c, prompt("sleep 1ms, after a while apart")))
	agents, err := c.Agents(b.ctx())
	if err != nil || len(agents) != 1 || agents[0].Name != "early" || agents[0].Source != "registered" {
		t.Errorf("agents: %+v, %v", agents, err)
	}
	agent.stop()
	// An agent that has ended is offered no more work, and why says so.
	id := b.submit(c, prompt("for nobody"))
	b.until("why names the agent that is gone", func() bool {
		why, err := c.Why(b.ctx(), id)
		return err == nil && slices.ContainsFunc(why.Gates, func(g api.Gate) bool {
			return g.Name == "agent_connected" && !g.OK && strings.Contains(g.Text+g.Detail, "early") && g.Cure != ""
		})
	})
}
