package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// mainEnv makes the test binary run as signalbox itself, so that a test can kill a
// director process.
const mainEnv = "SIGNALBOX_TEST_IS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

const testSecretKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// process is a director in its own process.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  lockedLog
	url  string
	done chan error
	*client.Client
}

type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// cluster is a fixture: several directors that share one store.
type cluster struct {
	*testing.T
	store string
	vars  []string
}

// overServers runs a test with each kind of store server that directors can share.
func overServers(t *testing.T, f func(c *cluster)) {
	t.Helper()
	t.Parallel()
	for kind, open := range map[string]func(testserver.TB) string{"postgres": testserver.Postgres, "redis": testserver.Redis} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			f(&cluster{T: t, store: open(t), vars: []string{"SIGNALBOX_SECRET_KEY=" + testSecretKey}})
		})
	}
}

// try starts a director. The error is set if the process ended before it was ready.
func (c *cluster) try(name string, args ...string) (*process, error) {
	c.Helper()
	home := c.TempDir()
	p := &process{t: c.T, name: name, done: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], append([]string{"director", "--addr", "127.0.0.1:0", "--data", home, "--store", c.store, "--instance", name, "--grace", "5s"}, args...)...)
	p.cmd.Env = append(append(os.Environ(), mainEnv+"=1", "SIGNALBOX_HOME="+home, "SIGNALBOX_TOKEN="+directorsToken), c.vars...)
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	if err := leaveNothing(p.cmd.Process.Pid); err != nil {
		c.Error(err)
	}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := regexp.MustCompile(`at (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		p.done <- p.cmd.Wait()
	}()
	c.Cleanup(func() {
		p.kill()
		if c.Failed() {
			c.Logf("%s:\n%s", name, p.log.String())
		}
	})
	select {
	case p.url = <-ready:
	case err := <-p.done:
		p.done <- err
		return p, err
	case <-time.After(time.Minute):
		c.Fatalf("%s is not ready:\n%s", name, p.log.String())
	}
	if p.Client, err = client.New(p.url, client.Options{Token: directorsToken}); err != nil {
		c.Fatal(err)
	}
	return p, nil
}

func (c *cluster) start(name string, args ...string) *process {
	c.Helper()
	p, err := c.try(name, args...)
	if err != nil {
		c.Fatalf("%s ended: %v\n%s", name, err, p.log.String())
	}
	return p
}

// kill ends it with SIGKILL.
func (p *process) kill() { p.signal(syscall.SIGKILL); _ = p.wait() }

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended

// wait waits for its end.
func (p *process) wait() error {
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(time.Minute):
		p.t.Errorf("%s does not end:\n%s", p.name, p.log.String())
		return errors.New("it does not end")
	}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// register registers agents at a director.
func (c *cluster) register(p *process, agents ...*agenttest.Agent) {
	c.Helper()
	for _, a := range agents {
		must(p.RegisterAgent(c.Context(), api.RegisterAgent{Name: a.Name, Kind: "demo", URL: a.URL(), Slots: a.Slots}))(c)
	}
}

func (c *cluster) submit(p *process, agent string) string {
	c.Helper()
	return must(p.Submit(c.Context(), api.SubmitRequest{Prompt: "do it", Agent: agent}, client.SubmitOptions{}))(c).QueueID
}

// ends waits for the end of a task at one director.
func (c *cluster) ends(p *process, id string, want signalbox.State) api.Task {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	task, err := p.Wait(ctx, id)
	if err != nil || task.State != string(want) {
		c.Fatalf("task %s: %v, it is %s (%s), want %s", id, err, task.State, task.Message, want)
	}
	return task
}

// holder waits until one of the directors dispatches to an agent, and returns it.
func (c *cluster) holder(agent string, among ...*process) *process {
	c.Helper()
	var holder *process
	testkit.Wait(c, "one dispatches to "+agent, func() bool {
		all, _ := among[0].Directors(c.Context())
		for _, d := range all {
			for _, p := range among {
				if p.name == d.Instance && d.Alive && contains(d.Agents, agent) {
					holder = p
				}
			}
		}
		return holder != nil
	})
	return holder
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// others returns all directors except one.
func others(all []*process, but *process) (rest []*process) {
	for _, p := range all {
		if p != but {
			rest = append(rest, p)
		}
	}
	return rest
}

// Any of three directors accepts a task, waits for it and cancels it, whichever of
// them dispatches to its agent. The tasks of a killed director are followed by
// another one within its lease plus a second.
func TestThreeDirectorsOverOneStore(t *testing.T) {
	overServers(t, func(c *cluster) {
		all := []*process{c.start("a"), c.start("b"), c.start("c")}
		one, two := agenttest.New(c, agenttest.Options{Name: "one"}), agenttest.New(c, agenttest.Options{Name: "two"})
		c.register(all[0], one, two)

		id := c.submit(all[1], "one")
		run := one.AwaitStart(1)
		one.Finish(run.TaskID, agenttest.End{})
		begun := time.Now()
		c.ends(all[2], id, signalbox.Completed)
		if took := time.Since(begun); took > 15*time.Second {
			c.Errorf("the wait at another director heard of the end after %s", took)
		}

		cancelled := c.submit(all[2], "two")
		two.AwaitStart(1)
		for _, p := range others(all, c.holder("two", all...)) {
			must(p.Cancel(c.Context(), cancelled))(c)
			break
		}
		two.AwaitRequest(agenttest.Cancel, 1)
		c.ends(all[0], cancelled, signalbox.Cancelled)

		followed := c.submit(all[0], "one")
		run = one.AwaitStart(2)
		holder := c.holder("one", all...)
		rest := others(all, holder)
		c.working(rest[0], followed)
		holder.kill()
		died := time.Now()
		one.Finish(run.TaskID, agenttest.End{})
		got := c.ends(rest[0], followed, signalbox.Completed)
		if took := time.Since(died); took > 30*time.Second { // internal/peers has the bound, in simulated time
			c.Errorf("it was followed after %s", took)
		}
		if len(one.Executions()) != 2 || got.Attempts != 0 {
			c.Errorf("%d executions, %d attempts", len(one.Executions()), got.Attempts)
		}
		after := c.submit(rest[1], "one")
		one.Finish(one.AwaitStart(3).TaskID, agenttest.End{})
		c.ends(rest[0], after, signalbox.Completed)
	})
}

// working waits until a task is working.
func (c *cluster) working(p *process, id string) {
	c.Helper()
	testkit.Wait(c, "task "+id+" works", func() bool {
		task, err := p.Task(c.Context(), id)
		return err == nil && task.State == string(signalbox.Working)
	})
}

// A director that stops hands its agents and their running tasks over at once.
func TestADirectorThatStopsHandsOver(t *testing.T) {
	overServers(t, func(c *cluster) {
		all := []*process{c.start("a"), c.start("b")}
		one := agenttest.New(c, agenttest.Options{Name: "one"})
		c.register(all[0], one)
		id := c.submit(all[0], "one")
		run := one.AwaitStart(1)
		c.working(all[0], id)
		holder := c.holder("one", all...)
		rest := others(all, holder)[0]
		begun := time.Now()
		holder.signal(syscall.SIGTERM)
		if err := holder.wait(); err != nil {
			c.Errorf("it ended with %v", err)
		}
		if took := time.Since(begun); took > 9*time.Second {
			c.Errorf("it took %s to stop: it did not hand over", took)
		}
		c.holder("one", rest)
		one.Finish(run.TaskID, agenttest.End{})
		c.ends(rest, id, signalbox.Completed)
		next := c.submit(rest, "one")
		one.Finish(one.AwaitStart(2).TaskID, agenttest.End{})
		c.ends(rest, next, signalbox.Completed)
	})
}

// TestIncidentDirectorStoppedForLong: a director that was suspended for longer than
// its lease continues as one of several when it resumes, and nothing ran twice.
func TestIncidentDirectorStoppedForLong(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the director lease")
	}
	overServers(t, func(c *cluster) {
		all := []*process{c.start("a"), c.start("b")}
		one := agenttest.New(c, agenttest.Options{Name: "one", Auto: true})
		c.register(all[0], one)
		holder := c.holder("one", all...)
		rest := others(all, holder)[0]
		c.ends(rest, c.submit(rest, "one"), signalbox.Completed)
		if err := proc.Suspend(holder.cmd.Process.Pid); err != nil {
			c.Fatal(err)
		}
		ids := []string{c.submit(rest, "one"), c.submit(rest, "one")}
		for _, id := range ids {
			c.ends(rest, id, signalbox.Completed)
		}
		proc.Resume(holder.cmd.Process.Pid)
		c.ends(holder, c.submit(holder, "one"), signalbox.Completed)
		if over := one.Overlaps(); len(over) > 0 || len(one.Executions()) != 4 {
			c.Errorf("%d executions, overlaps %v", len(one.Executions()), over)
		}
	})
}

// A second process with the same name is refused while the first is alive. After the
// first has died, another process can take its name, on any host.
func TestTwoDirectorsOfOneName(t *testing.T) {
	overServers(t, func(c *cluster) {
		first := c.start("a")
		second, err := c.try("a")
		if log := second.log.String(); err == nil || !strings.Contains(log, "--instance") || !strings.Contains(log, first.url) {
			c.Errorf("it ended with %v:\n%s", err, log)
		}
		must(first.Directors(c.Context()))(c)
		first.kill()
		must(c.start("a").Directors(c.Context()))(c)
	})
}

// A running director owns its data folder exclusively; after it has ended another one
// can use it.
func TestADataFolderIsOneDirectors(t *testing.T) {
	overServers(t, func(c *cluster) {
		folder := c.TempDir()
		first := c.start("a", "--data", folder)
		p, err := c.try("b", "--data", folder)
		if log := p.log.String(); err == nil || !strings.Contains(log, folder) || !strings.Contains(log, fmt.Sprint("process ", first.cmd.Process.Pid)) {
			c.Errorf("it ended with %v:\n%s", err, log)
		}
		must(first.Directors(c.Context()))(c)
		first.kill()
		c.start("b", "--data", folder)
	})
}

// Directors with different keys are refused with a message that says what to do.
func TestDirectorsNeedOneKey(t *testing.T) {
	overServers(t, func(c *cluster) {
		c.vars = nil
		first := c.start("a") // a single director may use the key of its data folder
		p, err := c.try("b")
		if log := p.log.String(); err == nil || !strings.Contains(log, "SIGNALBOX_SECRET_KEY") {
			c.Errorf("it ended with %v:\n%s", err, log)
		}
		c.vars = []string{"SIGNALBOX_SECRET_KEY=" + testSecretKey}
		p, err = c.try("b")
		if log := p.log.String(); err == nil || !strings.Contains(log, "another secret key") {
			c.Errorf("it ended with %v:\n%s", err, log)
		}
		must(first.Directors(c.Context()))(c)
	})
}
