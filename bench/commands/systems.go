package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	commands "github.com/signalbox-ai/signalbox/internal/gateway/command"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/internal/tooltask"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// bare starts the program and waits for it, and does nothing else.
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

func (b *bare) close() { b.null.Close() }

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

// run is a system by its name.
type run struct {
	name string
	one  one
}

// tools are runs of a tool, with the limits that this machine can keep and with
// those that every machine can, none and some of them set.
func (b *bench) tools() (runs []run, done func(), err error) {
	var hosts []*confine.Host
	done = func() {
		for _, h := range hosts {
			if err := h.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		}
	}
	bounds := toolconf.CommandLimits{Memory: 256 << 20, Processes: 64, FileSize: 1 << 30}
	for _, method := range []string{"auto", "rlimit"} {
		host, err := openHost("tools-"+method, method)
		if err != nil {
			done()
			return nil, nil, err
		}
		hosts = append(hosts, host)
		by := host.Report().Method
		if method == "auto" {
			b.method = by
		}
		for _, limits := range []toolconf.CommandLimits{{}, bounds} {
			tool, err := newTool(host, limits)
			if err != nil {
				done()
				return nil, nil, err
			}
			name := "run of a tool, " + by
			if limits != (toolconf.CommandLimits{}) {
				name += " with limits of memory, processes and file size"
			}
			runs = append(runs, run{name, runOf(tool)})
		}
	}
	return runs, done, nil
}

func openHost(name, method string) (*confine.Host, error) {
	return confine.Open(confine.Options{Name: fmt.Sprintf("signalbox-bench-%d-%s", os.Getpid(), name), Method: method})
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

// inside is the whole path with the director's parts in this process.
func (b *bench) inside(ctx context.Context, dir string) (one, func(), error) {
	s, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "inside", "signalbox.db")})
	if err != nil {
		return nil, nil, err
	}
	host, err := openHost("inside", "auto")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	x, g, err := executor(ctx, s, host)
	done := func() {
		if x != nil {
			x.Stop()
			err = errors.Join(err, g.Close())
		}
		if err = errors.Join(err, host.Close(), s.Close()); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		v, err := x.Submit(ctx, gateway.TaskCall{Call: gateway.Call{Tool: "true", Arguments: json.RawMessage(`{"n":1}`)}})
		if err == nil {
			v, err = x.Wait(ctx, v.Task.ID, time.Minute)
		}
		if err == nil && v.Task.State != signalbox.Completed {
			err = fmt.Errorf("%s: %s", v.Task.State, v.Task.Message)
		}
		return err
	}, done, nil
}

func executor(ctx context.Context, s *sqlite.Store, host *confine.Host) (*tooltask.Executor, *gateway.Gateway, error) {
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
	x := tooltask.New(tooltask.Options{Engine: e, Gateway: g, Concurrent: side})
	e.AddLive(x)
	if err = g.Start(ctx); err == nil {
		err = x.Start(ctx)
	}
	return x, g, err
}

// outside is the whole path through a real director.
func (b *bench) outside(ctx context.Context, dir string) (one, func(), error) {
	binary, err := director.Build(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	path, err := exec.LookPath("true")
	if err != nil {
		return nil, nil, err
	}
	tools, data := filepath.Join(dir, "tools.json"), filepath.Join(dir, "data")
	config := `{"maxConcurrent":` + strconv.Itoa(side) + `,"commandTools":{"true":{"command":` + strconv.Quote(path) + `,"async":true}}}`
	if err := os.WriteFile(tools, []byte(config), 0o600); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--tools", tools, "--grace", "0s", "--log-level", "error")
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data)
	d, err := director.Start(cmd)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(d.URL, client.Options{})
	if err != nil {
		d.Stop()
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		task, err := c.CreateToolTask(ctx, "true", api.NewToolTask{Arguments: json.RawMessage(`{"n":1}`)}, client.ToolTaskOptions{})
		if err == nil {
			task, err = c.WaitToolTask(ctx, task.ID)
		}
		if err == nil && task.Status != "completed" {
			err = fmt.Errorf("%s: %s", task.Status, task.Message)
		}
		return err
	}, d.Stop, nil
}

// profiled runs the whole path in this process once more, under the profiler.
func (b *bench) profiled(ctx context.Context, all []*system) error {
	f, err := os.Create(b.profile)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for _, s := range all {
		if s.side == callers { // the first is the one in this process
			_, err = times(ctx, s.one, 10*b.runs, s.side)
			break
		}
	}
	return err
}
