package agentd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Bounds on inspecting worktrees.
const (
	listTimeout = 20 * time.Second
	sizeKept    = time.Minute // how long the size of a folder stays valid
)

// sizes caches how much disk space folders use.
type sizes struct {
	mu    sync.Mutex
	known map[string]folderSize
}

type folderSize struct {
	at    time.Time
	bytes int64
	whole bool
}

// of is workspace.Size, at most a minute old.
func (s *sizes) of(ctx context.Context, dir string) (bytes int64, whole bool) {
	s.mu.Lock()
	known, ok := s.known[dir]
	s.mu.Unlock()
	if now := time.Now(); !ok || now.Sub(known.at) >= sizeKept {
		known.at = now
		known.bytes, known.whole = workspace.Size(ctx, dir)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.known == nil {
			s.known = map[string]folderSize{}
		}
		s.known[dir] = known
	}
	return known.bytes, known.whole
}

func (s *sizes) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, dir)
}

// worktreeNames lists the worktrees, most recently used first.
func (d *disk) worktreeNames() []string {
	entries, err := os.ReadDir(filepath.Join(d.dir, "worktrees"))
	if err != nil {
		return nil // there are none yet
	}
	used := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		if e.IsDir() { // a link is not a worktree
			names = append(names, e.Name())
			used[e.Name()] = d.worktreeUsed(e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return used[b].Compare(used[a]) })
	return names
}

// worktreeUsed is when a worktree was last used; the zero time if unknown.
func (d *disk) worktreeUsed(name string) time.Time {
	st, err := os.Lstat(filepath.Join(d.worktreeDir(name), "workspace.json"))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime().UTC()
}

// Workspaces lists the worktrees of the agent, most recently used first.
func (d *Daemon) Workspaces(ctx context.Context) api.AgentWorkspaces {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	d.careMu.Lock() // otherwise concurrent lists would see each other's locks as in use
	defer d.careMu.Unlock()
	list := api.AgentWorkspaces{Workspaces: []api.AgentWorkspace{}}
	for _, name := range d.disk.worktreeNames() {
		w := d.describe(ctx, name)
		list.Bytes += w.Bytes
		list.Workspaces = append(list.Workspaces, w)
	}
	list.Mirrors, _ = d.mirrors(ctx)
	for _, m := range list.Mirrors {
		list.Bytes += m.Bytes
	}
	list.MaxBytes, list.MinFreeBytes, list.Full = d.cfg.Workspace.MaxBytes, d.cfg.Workspace.MinFree, d.full()
	return list
}

// describe returns the state of a worktree and what would be lost with it.
func (d *Daemon) describe(ctx context.Context, name string) api.AgentWorkspace {
	v := api.AgentWorkspace{Name: name, Dir: d.disk.tree(name), State: api.WorkspaceUnknown, LastUsedAt: d.disk.worktreeUsed(name)}
	bytes, whole := d.sizes.of(ctx, d.disk.worktreeDir(name))
	v.Bytes, v.BytesAtLeast = bytes, !whole
	w, err := d.disk.loadWorktree(name)
	if err != nil {
		v.Message = err.Error()
		return v
	}
	v.Kind, v.Branch, v.Base, v.BaseBranch, v.QueueID, v.SessionID = w.place().kind, w.Branch, w.Base, w.BaseBranch, w.Task, w.Session
	v.Repo, v.CreatedAt = cmp.Or(w.Remote, w.Source), w.Made
	lock, ok, err := tryLockDir(d.disk.worktreeDir(name))
	if err == nil && !ok {
		v.State = api.WorkspaceInUse
		return v
	}
	if err == nil {
		defer lock.release()
		var a appraisal
		a, err = d.appraise(ctx, name, w)
		v.State, v.Seen = a.state, a.seen()
		v.Uncommitted, v.Files, v.Commits, v.CommitsCount = a.Files, a.FilesN, a.Commits, a.N
		v.Nested, v.NestedCount = a.Nested, a.NestedN
	}
	if err != nil {
		v.State, v.Message = api.WorkspaceUnknown, err.Error()
	}
	return v
}

// appraisal is the content of a worktree that exists nowhere else in its
// repository.
type appraisal struct {
	workspace.Lost
	state  string
	repo   *workspace.Repo
	tree   *workspace.Repo // nil: the folder is gone
	known  []string        // commits that are safe
	recent bool            // it has landed only recently
}

func (a *appraisal) seen() string {
	if !a.Any() {
		return ""
	}
	return a.Seen
}

// appraise inspects a worktree. The caller holds its lock.
func (d *Daemon) appraise(ctx context.Context, name string, w worktree) (a appraisal, err error) {
	if a.repo, err = workspace.Open(ctx, w.Source, d.cfg.Environ); err != nil {
		return a, fmt.Errorf("its repository %s cannot be opened: %w", w.Source, err)
	}
	if a.tree, err = a.repo.OpenWorktree(ctx, d.disk.tree(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	a.known, a.recent = d.landed(ctx, a.repo, name)
	landed := len(a.known) > 0
	a.known = append(a.known, w.Base, a.repo.Head(ctx))
	if a.Lost, err = a.repo.Lost(ctx, a.tree, w.Branch, a.known...); err != nil {
		return a, err
	}
	switch {
	case a.FilesN > 0 || a.NestedN > 0:
		a.state = api.WorkspaceUncommitted
	case a.N > 0:
		a.state = api.WorkspaceUnlanded
	case landed || a.Head != "" && a.Head != w.Base:
		a.state = api.WorkspaceLanded
	default:
		a.state = api.WorkspaceEmpty
	}
	return a, nil
}

// discard removes a worktree and everything in it.
func (d *Daemon) discard(ctx context.Context, name string, how api.DiscardWorkspace) (v api.WorkspaceDiscarded, err error) {
	d.careMu.Lock()
	defer d.careMu.Unlock()
	if !slices.Contains(d.disk.worktreeNames(), name) {
		return v, refuse(http.StatusNotFound, "not_found", "this agent has no worktree %q", preview(name))
	}
	lock, ok, err := tryLockDir(d.disk.worktreeDir(name))
	if err != nil {
		return v, err
	}
	if !ok {
		return v, refuse(http.StatusConflict, "workspace_in_use", "the worktree %s is in use: cancel the task that works in it, or wait for its end", name)
	}
	defer lock.release()
	w, err := d.disk.loadWorktree(name)
	if err != nil {
		return v, refuse(http.StatusConflict, "workspace_unknown", "what is in the worktree %s is not known (%v): look at %s, and remove that folder", name, err, d.disk.worktreeDir(name))
	}
	a, err := d.appraise(ctx, name, w)
	if err != nil {
		return v, refuse(http.StatusConflict, "workspace_unknown", "what is in the worktree %s is not known (%v): look at %s, and remove that folder", name, err, d.disk.worktreeDir(name))
	}
	loses := a.FilesN > 0 || a.NestedN > 0 || how.DeleteBranch && a.N > 0
	switch {
	case loses && how.Seen == "":
		return v, refuse(http.StatusConflict, "workspace_has_work", "%s would be lost with the worktree %s: send what the list has as seen to discard it all the same", a.losses(how.DeleteBranch), name)
	case loses && how.Seen != a.Seen:
		return v, refuse(http.StatusConflict, "workspace_has_work", "the worktree %s has changed since it was looked at: now %s would be lost with it", name, a.losses(how.DeleteBranch))
	}
	v = api.WorkspaceDiscarded{Name: name, Branch: w.Branch}
	v.Bytes, _ = d.sizes.of(ctx, d.disk.worktreeDir(name))
	if !how.DeleteBranch && a.tree != nil {
		if err := a.tree.Keep(ctx, w.Branch); err != nil {
			return v, err
		}
	}
	v.BranchDeleted, err = d.removeWorktree(ctx, name, w, &a, how.DeleteBranch)
	return v, err
}

// losses lists what would be lost; commits only if the branch is deleted too.
func (a *appraisal) losses(branch bool) string {
	var parts []string
	if a.FilesN > 0 {
		parts = append(parts, workspace.Counted(a.FilesN, "uncommitted file"))
	}
	switch {
	case a.NestedN == 1:
		parts = append(parts, "the work in the repository within, "+a.Nested[0])
	case a.NestedN > 1:
		parts = append(parts, fmt.Sprintf("the work in %d repositories within", a.NestedN))
	}
	if branch && a.N > 0 {
		parts = append(parts, workspace.Counted(a.N, "commit"))
	}
	return strings.Join(parts, " and ")
}

// removeWorktree removes a worktree; the caller holds its lock. Its branch is deleted if all
// its commits exist elsewhere, or on request if it has not moved since the caller saw it.
func (d *Daemon) removeWorktree(ctx context.Context, name string, w worktree, a *appraisal, branch bool) (deleted bool, err error) {
	defer d.lookForRoom()
	defer d.sizes.forget(d.disk.worktreeDir(name))
	if err := a.repo.RemoveWorktree(ctx, d.disk.tree(name)); err != nil {
		return false, err
	}
	if branch && a.Tip != "" {
		err = a.repo.DeleteBranch(ctx, w.Branch, a.Tip)
	} else {
		err = a.repo.DropBranch(ctx, w.Branch, a.known...)
	}
	if err != nil {
		return false, err
	}
	at, _ := a.repo.Commit(ctx, "refs/heads/"+w.Branch)
	return at == "", os.RemoveAll(d.disk.worktreeDir(name))
}

// keepInterrupted commits what an interrupted run left in its worktree, and adds its changes
// to the record. No process of the run is alive.
func (d *Daemon) keepInterrupted(rec *record) {
	r := &run{d: d, rec: *rec}
	defer os.RemoveAll(r.objects())
	name := nameOf(cmp.Or(rec.QueueID, rec.TaskID))
	if s, ok := d.disk.loadSession(rec.SessionID); ok {
		name = d.disk.worktreeOf(s.Dir)
	}
	if rec.Isolated || name == "" {
		return
	}
	w, err := d.disk.loadWorktree(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !w.Ready {
		return
	}
	lock, ok, lerr := tryLockDir(d.disk.worktreeDir(name))
	if lerr == nil && ok {
		defer lock.release()
		ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
		defer cancel()
		if err == nil {
			rec.Changes, err = r.keepWork(ctx, w, name)
		}
	}
	if err = errors.Join(err, lerr); err != nil {
		d.cfg.Logger.Warn("the remains of an interrupted run could not be committed or compared, and stay in its worktree", "worktree", name, "error", err)
	}
}

// keepWork commits what is left in a worktree to a branch, and returns the task's changes if
// they are known. The caller holds the lock of the worktree.
func (r *run) keepWork(ctx context.Context, w worktree, name string) (*api.Changes, error) {
	d, rec := r.d, r.record()
	repo, err := workspace.Open(ctx, w.Source, d.cfg.Environ)
	if err != nil {
		return nil, err
	}
	tree, err := repo.OpenWorktree(ctx, d.disk.tree(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id := cmp.Or(rec.QueueID, rec.TaskID)
	if w.Turn == nil || w.Turn.Task != id { // it was killed before its program started
		return nil, d.commitWork(ctx, tree, w, id)
	}
	c, err := r.readChanges(ctx, &watched{tree, w.Turn.Before}, runDirs{worktree: name, kind: w.place().kind})
	if c != nil {
		c.Patch = "" // stored in a file of its own
	}
	return c, err
}

// commitWork commits what a task left in a worktree to a branch.
func (d *Daemon) commitWork(ctx context.Context, tree *workspace.Repo, w worktree, id string) error {
	if err := errors.Join(tree.Unlock(w.Branch), tree.CommitAll(ctx, "Work of "+d.cfg.Name+" on "+id, "Signalbox-Task: "+id)); err != nil {
		return err
	}
	return tree.Keep(ctx, w.Branch)
}

// getWorkspaces handles GET /workspaces.
func (d *Daemon) getWorkspaces(w http.ResponseWriter, req *http.Request) error {
	return reply(w, http.StatusOK, d.Workspaces(req.Context()))
}

// deleteWorkspace handles DELETE /workspaces/{name}. It continues if the caller
// disconnects.
func (d *Daemon) deleteWorkspace(w http.ResponseWriter, req *http.Request) error {
	q := req.URL.Query()
	how := api.DiscardWorkspace{Seen: q.Get("seen")}
	if s := q.Get("delete_branch"); s != "" {
		var err error
		if how.DeleteBranch, err = strconv.ParseBool(s); err != nil {
			return invalid("delete_branch is %q: true or false", preview(s))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), changesTimeout)
	defer cancel()
	done, err := d.discard(ctx, req.PathValue("name"), how)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, done)
}
