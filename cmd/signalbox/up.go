package main

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
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// runUp is the director with an agent for each coding CLI on PATH, else the
// demo agent, as child processes.
func runUp(ctx context.Context, cfg config.Config, o cli.UpOptions) error {
	proc.KeepPrivate()
	s, err := openService(ctx, cfg, config.Home(os.LookupEnv), streams{o.Out, o.Err})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.close()
	children := newChildren(s, o.Kinds)
	var keepers sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	err = s.run(ctx, func(ctx context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox at %s (data %s)\n", s.url, cfg.Data)
		var err error
		if children, err = startable(ctx, children); err != nil {
			return err
		}
		for _, c := range children {
			keepers.Go(func() { c.keep(keeping) })
			c.describe()
		}
		describeTools(s.out, cfg.Tools, s.url, bridgeCommand, s.identity.Open())
		self := asTyped(os.Args[0], exec.LookPath)
		fmt.Fprintf(o.Out, "\nSubmit a prompt from another terminal:\n  %s submit --wait \"say hello\"\n\nWatch it at %s, or with %s top.\n", self, s.url, self)
		s.describeAccess()
		return nil
	})
	stopKeeping()
	keepers.Wait()
	for _, c := range children {
		c.end(cfg.OnShutdown == "stop")
	}
	return unlessStopped(ctx, err)
}

// asTyped is how another terminal calls this program: by its name where that is
// on PATH, else as it was called itself.
func asTyped(arg0 string, look func(string) (string, error)) string {
	const name = "signalbox"
	if _, err := look(name); err == nil {
		return name
	}
	if strings.Contains(filepath.ToSlash(arg0), "/go-build") { // by go run, whose binary goes with it
		return "go run ./cmd/" + name
	}
	return arg0
}

// newChildren makes an agent for each kind asked for; for nil, the one of the
// configuration, else one for each kind that has options there and for each
// coding CLI on PATH, else the demo agent.
func newChildren(s *service, kinds []string) []*child {
	found := runner.Detect()
	if kinds == nil && s.cfg.Agent.Kind != "" {
		kinds = []string{s.cfg.Agent.Kind}
	}
	if kinds == nil {
		kinds = slices.Clone(s.cfg.Kinds)
		for _, f := range found {
			if !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
		if kinds == nil {
			fmt.Fprintln(s.out.Out, "No coding CLI (claude, codex, opencode) on PATH: starting the built-in demo agent.")
			kinds = []string{"demo"}
		}
	}
	children := make([]*child, len(kinds))
	for i, kind := range kinds {
		children[i] = &child{s: s, cfg: s.cfg.For(kind), name: kind, kind: kind}
		if at := slices.IndexFunc(found, func(f runner.Found) bool { return f.Kind == kind }); at >= 0 {
			children[i].found = found[at]
		}
	}
	return children
}

// startable starts the children and returns those that run. One that cannot is
// told and left out, so that it keeps no other from its work; it is an error
// where none can.
func startable(ctx context.Context, children []*child) (running []*child, err error) {
	errs := startAll(ctx, children)
	for i, c := range children {
		if errs[i] == nil {
			running = append(running, c)
		} else if ctx.Err() == nil {
			fmt.Fprintf(c.s.out.Err, "Error: %v\n", errs[i])
		}
	}
	if len(running) == 0 && len(children) > 0 {
		return nil, errors.Join(errs...)
	}
	return running, ctx.Err()
}

// startAll starts the children side by side.
func startAll(ctx context.Context, children []*child) []error {
	errs := make([]error, len(children))
	var group sync.WaitGroup
	for i, c := range children {
		group.Go(func() { errs[i] = c.start(ctx) })
		group.Go(func() { c.learnLogin(ctx) })
	}
	group.Wait()
	return errs
}
