// Package workspaces measures the cost of a separate worktree for a task.
//
//	accepted  from the submit to the acceptance by the agent
//	task      from the submit to the end of a task whose program is true
//	worktree  making a worktree of 10,000 files, with all of them checked out
package workspaces

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Group is the figures of workspaces.
var Group = measure.Group{Name: "workspaces", Duels: duels}

const (
	files    = 10_000
	accepted = "accepted" // ms
	folder   = "the same in a folder"
	git      = "git worktree add"
)

func duels(*measure.Bench) []*measure.Duel {
	r := &rig{}
	inFolder, inWorktree := r.tasks(folder, "folder"), r.tasks("Signalbox, in a new worktree", "worktree")
	return []*measure.Duel{
		{Name: "workspaces/task", Ours: inWorktree, Peers: []*measure.Side{inFolder}, Rows: []measure.Row{
			{ID: "accepted", Key: accepted, Title: "submit → accepted, in a new worktree of a small repository, median", Unit: "ms", Lower: true, Target: measure.Target{Of: folder, AtLeast: 1 / 2.5}},
			{ID: "ended", Key: load.P50, Title: "submit → end of true, in a new worktree of a small repository, median", Unit: "ms", Lower: true, Detail: true},
		}},
		{Name: "workspaces/worktree", Ours: r.worktrees("Signalbox", addByAgent), Peers: []*measure.Side{r.worktrees(git, addByGit)}, Limit: r.worktrees("the same files, and nothing else", writeAlone), Rows: []measure.Row{
			{Key: load.P50, Title: "a worktree of 10,000 files, median", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 300}},
		}},
	}
}

// rig is the shared state of the sides.
type rig struct {
	url    string
	c      *client.Client
	binary string
	large  string // repository of 10,000 files
}

// environ returns the environment of git and agents, without the user's configuration.
func environ(b *measure.Bench) []string {
	return append(os.Environ(), "HOME="+b.Dir, "GIT_CONFIG_NOSYSTEM=1", "SIGNALBOX_HOME="+filepath.Join(b.Dir, "home"))
}

// write creates n files.
func write(dir string, n int) error {
	for i := range n {
		path := filepath.Join(dir, strconv.Itoa(i/100), strconv.Itoa(i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// repository creates a repository with n files.
func repository(ctx context.Context, b *measure.Bench, name string, n int) (string, error) {
	dir := filepath.Join(b.Dir, name)
	if err := write(dir, n); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Bench", "-c", "user.email=bench@example.com", "commit", "-qm", "all"}, {"repack", "-adq"}} { // packed like a clone
		if err := run(ctx, b, dir, args...); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func run(ctx context.Context, b *measure.Bench, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, environ(b)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return nil
}

// start starts a director, once.
func (r *rig) start(ctx context.Context, b *measure.Bench) (err error) {
	if r.c != nil {
		return nil
	}
	if r.binary, err = director.Build(ctx, b.Bin); err != nil {
		return err
	}
	d, err := r.process(ctx, b, "director", "--open", "--addr", "127.0.0.1:0", "--data", filepath.Join(b.Dir, "director"))
	if err != nil {
		return err
	}
	r.url = d.URL
	r.c, err = client.New(d.URL, client.Options{})
	return err
}

func (r *rig) process(ctx context.Context, b *measure.Bench, args ...string) (*director.Process, error) {
	cmd := exec.CommandContext(ctx, r.binary, append(args, "--log-level", "error")...)
	cmd.Env = environ(b)
	p, err := director.Start(cmd)
	if err == nil {
		b.Cleanup(p.Stop)
	}
	return p, err
}

// tasks measures sequential tasks of an agent, each in a workspace of a kind.
func (r *rig) tasks(name, kind string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if err := r.start(ctx, b); err != nil {
			return nil, err
		}
		dir, err := repository(ctx, b, "small-"+kind, 10)
		if err != nil {
			return nil, err
		}
		if _, err := r.process(ctx, b, "agent", "--name", kind, "--addr", "127.0.0.1:0", "--data", filepath.Join(b.Dir, kind), "--director", r.url,
			"--workdir", dir, "--workspace", kind, "--", "true"); err != nil {
			return nil, err
		}
		for ctx.Err() == nil { // until the agent is registered; the first one warms caches
			if _, err = r.task(ctx, kind); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			var took, waited []time.Duration
			for start := time.Now(); time.Since(start) < b.Span; {
				at := time.Now()
				task, err := r.task(ctx, kind)
				if err != nil {
					return nil, err
				}
				took = append(took, time.Since(at))
				waited = append(waited, task.StartedAt.Sub(task.CreatedAt))
			}
			v := load.Spread(took)
			v[accepted] = load.Quantile(waited, 0.5)
			return v, nil
		}, nil
	}}
}

func (r *rig) task(ctx context.Context, agent string) (api.Task, error) {
	got, err := r.c.Submit(ctx, api.SubmitRequest{Prompt: "true", Agent: agent}, client.SubmitOptions{})
	if err != nil {
		return api.Task{}, err
	}
	task, err := r.c.Wait(ctx, got.QueueID)
	if err == nil && (task.State != "completed" || task.StartedAt == nil) {
		err = fmt.Errorf("%s: %s", task.State, task.Message)
	}
	return task, err
}

// worktrees measures worktrees of a large repository, made by add and removed again.
func (r *rig) worktrees(name string, add func(ctx context.Context, b *measure.Bench, repo, dir string, n int) error) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if r.large == "" {
			var err error
			if r.large, err = repository(ctx, b, "large", files); err != nil {
				return nil, err
			}
		}
		n := 0
		return func(ctx context.Context) (measure.Values, error) {
			var took []time.Duration
			for start := time.Now(); time.Since(start) < b.Span; {
				n++
				dir := filepath.Join(b.Dir, fmt.Sprintf("tree-%s-%d", filepath.Base(name), n))
				at := time.Now()
				if err := add(ctx, b, r.large, dir, n); err != nil {
					return nil, err
				}
				took = append(took, time.Since(at))
				if err := os.RemoveAll(dir); err != nil {
					return nil, err
				}
				if err := run(ctx, b, r.large, "worktree", "prune"); err != nil {
					return nil, err
				}
			}
			return load.Spread(took), nil
		}, nil
	}}
}

func addByAgent(ctx context.Context, b *measure.Bench, repo, dir string, n int) error {
	r, err := workspace.Open(ctx, repo, environ(b))
	if err == nil {
		_, err = r.AddWorktree(ctx, dir, "signalbox/"+strconv.Itoa(n), "")
	}
	return err
}

func addByGit(ctx context.Context, b *measure.Bench, repo, dir string, n int) error {
	return run(ctx, b, repo, "worktree", "add", "-q", "-b", "git/"+strconv.Itoa(n), dir)
}

func writeAlone(_ context.Context, _ *measure.Bench, _, dir string, _ int) error {
	return write(dir, files)
}
