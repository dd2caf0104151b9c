package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	commands "github.com/signalbox-ai/signalbox/internal/gateway/command"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// bare only starts the program and waits for it.
type bare struct {
	path string
	null *os.File
}

func newBare() (*bare, error) {
	path, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	return &bare{path, null}, err
}

func (r *rig) bare(_ context.Context, b *measure.Bench) (one, error) {
	if r.bareLoop == nil {
		loop, err := newBare()
		if err != nil {
			return nil, err
		}
		b.Cleanup(func() { loop.null.Close() })
		r.bareLoop = loop
	}
	return r.bareLoop.run, nil
}

func (b *bare) run(context.Context) error {
	p, err := os.StartProcess(b.path, []string{b.path}, &os.ProcAttr{Env: []string{}, Files: []*os.File{b.null, b.null, b.null}})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}

// bounds are typical limits.
var bounds = toolconf.CommandLimits{Memory: 256 << 20, Processes: 64, FileSize: 1 << 30}

// host enforces limits on this machine by one method.
type host = confine.Host

// tool runs a tool with the limits that a method can enforce: auto is the best
// method of this machine, rlimit works on every machine.
func (r *rig) tool(method string, limits toolconf.CommandLimits) func(context.Context, *measure.Bench) (one, error) {
	return func(_ context.Context, b *measure.Bench) (one, error) {
		h, err := r.host(b, method)
		if err != nil {
			return nil, err
		}
		tool, err := newTool(h, limits)
		if err != nil {
			return nil, err
		}
		return runOf(tool), nil
	}
}

func (r *rig) host(b *measure.Bench, method string) (*host, error) {
	if h := r.hosts[method]; h != nil {
		return h, nil
	}
	h, err := openHost("tools-"+method, method)
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { closed(h.Close()) })
	if r.hosts == nil {
		r.hosts = map[string]*host{}
	}
	r.hosts[method] = h
	fmt.Fprintf(os.Stderr, "commands: %s means limits by %s\n", method, h.Report().Method)
	return h, nil
}

func openHost(name, method string) (*host, error) {
	return confine.Open(confine.Options{Name: fmt.Sprintf("signalbox-bench-%d-%s", os.Getpid(), name), Method: method})
}

func closed(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

func newTool(host *confine.Host, limits toolconf.CommandLimits) (*command.Tool, error) {
	path, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	return command.New(toolconf.CommandTool{Name: "true", Command: path, Cwd: os.TempDir(), Async: true, Limits: limits}, command.Options{Host: host})
}

var marks atomic.Int64

func runOf(tool *command.Tool) one {
	return func(ctx context.Context) error {
		o := tool.Run(ctx, command.Run{Mark: "bench-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(marks.Add(1), 10), Input: json.RawMessage(`{"n":1}`)})
		if o.Reason != signalbox.ReasonCompleted {
			return fmt.Errorf("%s: %s", o.Reason, o.Message)
		}
		return nil
	}
}

// inside measures the whole path with the director's parts in this process.
func (r *rig) inside(ctx context.Context, b *measure.Bench) (one, error) {
	if r.in != nil {
		return r.in, nil
	}
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(b.Dir, "inside", "signalbox.db")})
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { closed(s.Close()) })
	h, err := openHost("inside", "auto")
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { closed(h.Close()) })
	x, g, err := executor(ctx, s, h)
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() {
		x.Stop()
		closed(g.Close())
	})
	r.in = func(ctx context.Context) error {
		v, err := x.Submit(ctx, gateway.TaskCall{Call: gateway.Call{Tool: "true", Arguments: json.RawMessage(`{"n":1}`)}})
		if err == nil {
			v, err = x.Wait(ctx, v.Task.ID, time.Minute)
		}
		if err == nil && v.Task.State != signalbox.Completed {
			err = fmt.Errorf("%s: %s", v.Task.State, v.Task.Message)
		}
		return err
	}
	return r.in, nil
}

func executor(ctx context.Context, s *sqlite.Store, host *confine.Host) (*local.Executor, *gateway.Gateway, error) {
	sealer, err := seal.New(bytes.Repeat([]byte{3}, seal.KeyBytes))
	if err != nil {
		return nil, nil, err
	}
	tool, err := newTool(host, toolconf.CommandLimits{})
	if err != nil {
		return nil, nil, err
	}
	g, err := gateway.New(gateway.Options{Queues: toolqueue.New(toolqueue.Hooks{}), Providers: []gateway.Provider{commands.New([]*command.Tool{tool}, commands.Options{})}})
	if err != nil {
		return nil, nil, err
	}
	e := engine.New(s, engine.Options{Sealer: sealer})
	x := local.New(local.Options{Engine: e, Gateway: g, Concurrent: side})
	e.AddLive(x)
	if err = g.Start(ctx); err == nil {
		err = x.Start(ctx)
	}
	return x, g, err
}

// outside measures the whole path through a real director.
func (r *rig) outside(ctx context.Context, b *measure.Bench) (one, error) {
	if r.over != nil {
		return r.over, nil
	}
	binary, err := director.Build(ctx, b.Bin)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	tools, data := filepath.Join(b.Dir, "tools.json"), filepath.Join(b.Dir, "data")
	config := `{"maxConcurrent":` + strconv.Itoa(side) + `,"commandTools":{"true":{"command":` + strconv.Quote(path) + `,"async":true}}}`
	if err := os.WriteFile(tools, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "director", "--open", "--addr", "127.0.0.1:0", "--data", data, "--tools", tools, "--grace", "0s", "--log-level", "error")
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data)
	d, err := director.Start(cmd)
	if err != nil {
		return nil, err
	}
	b.Cleanup(d.Stop)
	c, err := client.New(d.URL, client.Options{})
	r.over = func(ctx context.Context) error {
		task, err := c.CreateToolTask(ctx, "true", api.NewToolTask{Arguments: json.RawMessage(`{"n":1}`)}, client.ToolTaskOptions{})
		if err == nil {
			task, err = c.WaitToolTask(ctx, task.ID)
		}
		if err == nil && task.Status != "completed" {
			err = fmt.Errorf("%s: %s", task.Status, task.Message)
		}
		return err
	}
	return r.over, err
}
