package agentd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// place is where the runs of a conversation work.
type place struct {
	kind   string // workspace.KindFolder, …
	source string // for a worktree: a folder in the repository
	remote string // for a clone
	base   string // "": the default
}

// placeOf returns where a task works; project is the folder of its project. It refuses a place
// that the agent may not use, and a place that differs from the conversation's.
func (d *Daemon) placeOf(t *api.AgentTask, project string) (p place, ref *refusal) {
	said := signalbox.NewWorkspace(t.Workspace, t.Repo, t.Base)
	if err := said.Check((*signalbox.Project)(t.Project)); err != nil {
		return p, invalid("%v", err)
	}
	p = place{kind: cmp.Or(t.Workspace, d.cfg.Workspace.Kind), base: cmp.Or(t.Base, d.cfg.Workspace.Base)}
	switch {
	case said == nil:
	case t.Isolated:
		return p, invalid("workspace, repo and base cannot be used with isolated, which has a working directory of its own")
	case d.runner.Inside() && p.kind != workspace.KindFolder:
		return p, invalid("workspace is %q: agents of kind %s work in no folder", t.Workspace, d.cfg.Kind)
	case t.Base != "" && p.kind == workspace.KindFolder:
		return p, invalid("base needs a workspace that is worktree or clone: this agent works in its folder")
	}
	switch p.kind {
	case workspace.KindWorktree:
		p.source = cmp.Or(project, d.cfg.WorkDir)
		if t.Repo != "" {
			dir, err := d.projectDir(&api.Project{Path: t.Repo})
			if err != nil {
				return p, invalid("repo: %v", err)
			}
			p.source = dir
		}
	case workspace.KindClone:
		if p.remote = cmp.Or(t.Repo, d.cfg.Workspace.Repo); p.remote == "" {
			return p, invalid("workspace is clone, and neither repo nor workspace.repo of this agent says of what")
		}
		if t.Repo != "" && !d.mayClone(t.Repo) {
			return p, invalid("repo: this agent may not clone %s: its operator can allow addresses with workspace.repos", t.Repo)
		}
		if t.Repo != "" && t.Base == "" && t.Repo != d.cfg.Workspace.Repo {
			p.base = "" // the configured base belongs to another repository
		}
	}
	return p, d.checkHeld(t, said, p)
}

// checkHeld refuses a place for a conversation that differs from its current one.
func (d *Daemon) checkHeld(t *api.AgentTask, said *signalbox.Workspace, p place) *refusal {
	if said == nil || t.SessionID == "" {
		return nil
	}
	s, ok := d.disk.loadSession(t.SessionID)
	if !ok {
		return nil
	}
	held := place{kind: workspace.KindFolder}
	if name := d.disk.worktreeOf(s.Dir); name != "" {
		w, err := d.disk.loadWorktree(name)
		if err != nil {
			return nil // reported when the worktree is entered
		}
		held = w.place()
	}
	if held.kind == p.kind && (t.Repo == "" || held.source == p.source && held.remote == p.remote) && (t.Base == "" || held.base == t.Base) {
		return nil
	}
	where := "the agent's folder"
	if held.kind != workspace.KindFolder {
		where = fmt.Sprintf("a %s of %s, made from %s", held.kind, cmp.Or(held.remote, held.source), cmp.Or(held.base, "its default"))
	}
	return invalid("the conversation %s is held in %s, and stays there: leave out workspace, repo and base, or begin another conversation", t.SessionID, where)
}

// place is where a worktree was made.
func (w *worktree) place() place {
	if w.Remote != "" {
		return place{kind: workspace.KindClone, remote: w.Remote, base: w.From}
	}
	return place{kind: workspace.KindWorktree, source: w.Source, base: w.From}
}

// mayClone reports whether tasks may name a URL: it must be in the configured list; if there
// is no list, it must be the configured repository or the remote of the agent's folder.
func (d *Daemon) mayClone(remote string) bool {
	c := d.cfg.Workspace
	if remote == c.Repo {
		return true
	}
	if c.Repos != nil {
		return slices.ContainsFunc(c.Repos, func(pattern string) bool {
			ok, err := path.Match(pattern, remote)
			return ok && err == nil
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	repo, err := workspace.Open(ctx, d.cfg.WorkDir, d.cfg.Environ)
	return err == nil && repo.OriginURL(ctx) == remote
}

// fetchTimeout bounds an update of a mirror, including the first fetch.
const fetchTimeout = 30 * time.Minute

// mirrorDir is the folder of the mirror of a remote repository.
func (d *disk) mirrorDir(remote string) string {
	sum := sha256.Sum256([]byte(remote))
	return filepath.Join(d.dir, "mirrors", hex.EncodeToString(sum[:8]), "repo")
}

// mirror updates the mirror of a remote repository and returns its folder. If the remote cannot
// be reached, it uses the mirror as it is.
func (r *run) mirror(remote string) (string, error) {
	ctx, cancel := r.workspaceContext(fetchTimeout)
	defer cancel()
	dir := r.d.disk.mirrorDir(remote)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	locks, err := r.lock([]string{filepath.Dir(dir)})
	if err != nil {
		return "", err
	}
	defer releaseAll(locks)
	repo, err := workspace.OpenMirror(ctx, dir, remote, r.d.cfg.Environ)
	if err != nil {
		return "", fmt.Errorf("the mirror of %s cannot be opened: %w", remote, err)
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Dir(dir), now, now); err != nil {
		return "", err
	}
	defer r.d.sizes.forget(filepath.Dir(dir))
	fmt.Fprintf(r.log, "[signalbox] fetching %s\n", remote)
	if err := repo.Fetch(ctx, remote, r.log); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if repo.Head(ctx) == "" {
			return "", fmt.Errorf("%s cannot be cloned: %w", remote, err)
		}
		r.logNote("%s cannot be reached, so this run works with what was fetched before: %v", remote, err)
	}
	return repo.Dir, nil
}
