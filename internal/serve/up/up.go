// Package up runs a director with an agent for each coding CLI as child processes.
package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/child"
	"github.com/signalbox-ai/signalbox/internal/serve/director"
)

// Run runs a director with an agent for each coding CLI on PATH, else the demo agent,
// until ctx ends.
func Run(ctx context.Context, p serve.Program, cfg config.Config, o roles.Up) error {
	proc.KeepPrivate()
	d, err := director.Open(ctx, p, cfg, config.Home(os.LookupEnv), o.Streams)
	if err != nil {
		return serve.UnlessStopped(ctx, err)
	}
	defer d.Close()
	agents := choose(d, o.Kinds)
	var keepers lifecycle.Group
	err = d.Run(ctx, func(ready context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox at %s (data %s)\n", d.URL, cfg.Data)
		var err error
		if agents, err = start(ready, d, agents); err != nil {
			return err
		}
		for _, a := range agents {
			keepers.Go(context.WithoutCancel(ctx), a.Keep)
			a.describe(o.Out)
		}
		adviseOnFolder(o.Out, agents)
		d.DescribeTools()
		self := Command(os.Args[0], exec.LookPath)
		fmt.Fprintf(o.Out, "\nSubmit a prompt from another terminal:\n  %s submit --wait \"say hello\"\n\nWatch it at %s, or with %s top.\n", self, d.URL, self)
		d.DescribeAccess()
		return nil
	})
	serve.Stop(&keepers, d.Log)
	for _, a := range agents {
		a.End(cfg.OnShutdown == "stop")
	}
	return serve.UnlessStopped(ctx, err)
}

// Command is the command for this program in another terminal: its name if that is on PATH,
// else the way in which it was called. The PATH that npx sets is only for its own programs.
func Command(arg0 string, look func(string) (string, error)) string {
	const name = "signalbox"
	if os.Getenv("npm_command") == "exec" {
		return "npx " + name
	}
	if _, err := look(name); err == nil {
		return name
	}
	if strings.Contains(filepath.ToSlash(arg0), "/go-build") { // go run removes its binary when it ends
		return "go run ./cmd/" + name
	}
	return arg0
}

// local is an agent of up.
type local struct {
	*child.Child
	found   runner.DetectedCLI // the CLI; zero for other kinds of agents
	version string             // version of the CLI, set after the start
	login   runner.Login       // likewise
}

// choose makes an agent for each of kinds. If kinds is nil, it makes the agent of the
// configuration, else one for each kind that has options there and for each coding CLI on
// PATH, else the demo agent.
func choose(d *director.Director, kinds []string) []*local {
	found := runner.OnPath()
	if kinds == nil && d.Config.Agent.Kind != "" {
		kinds = []string{d.Config.Agent.Kind}
	}
	if kinds == nil {
		kinds = slices.Clone(d.Config.Kinds)
		for _, f := range found {
			if !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
		if kinds == nil {
			fmt.Fprintln(d.Out.Out, "No coding CLI (claude, codex, opencode) on PATH: starting the built-in demo agent.")
			kinds = []string{"demo"}
		}
	}
	agents := make([]*local, len(kinds))
	for i, kind := range kinds {
		agents[i] = &local{Child: child.New(d, kind, kind)}
		if at := slices.IndexFunc(found, func(f runner.DetectedCLI) bool { return f.Kind == kind }); at >= 0 {
			agents[i].found = found[at]
		}
	}
	return agents
}

// start starts agents and returns those that run. It reports agents that fail and leaves
// them out; it is an error if all fail.
func start(ctx context.Context, d *director.Director, agents []*local) (running []*local, err error) {
	children := make([]*child.Child, len(agents))
	var questions sync.WaitGroup // queries of the CLIs, which take seconds
	for i, a := range agents {
		children[i] = a.Child
		if a.found.Path != "" {
			questions.Go(func() { a.version = a.found.Version(ctx) })
			questions.Go(func() { a.login = loginOf(ctx, a.Config.Agent, a.found) })
		}
	}
	errs := child.StartAll(ctx, children)
	questions.Wait()
	for i, a := range agents {
		if errs[i] == nil {
			running = append(running, a)
		} else if ctx.Err() == nil {
			fmt.Fprintf(d.Out.Err, "Error: %v\n", errs[i])
		}
	}
	if len(running) == 0 && len(agents) > 0 {
		return nil, errors.Join(errs...)
	}
	return running, ctx.Err()
}
