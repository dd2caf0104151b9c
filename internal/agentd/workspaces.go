package agentd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// Workspace says in which folder runs work. Isolated runs have an empty
// folder.
type Workspace struct {
	Kind  string   // folder (default): the agent's own; worktree: a git worktree for each conversation; clone: a worktree of a mirror of Repo
	Repo  string   // URL of the repository for clones, see signalbox.ValidRemote
	Repos []string // patterns of URLs that tasks may name; nil: Repo, and the origin of the agent's folder
	Base  string   // branch, tag or commit from which worktrees are made; default: what is checked out in the agent's folder, or the remote's HEAD
	Setup []string // shell commands that run in a new worktree before anything else
	Carry []string // patterns of ignored files that are copied into a new worktree
	// MaxBytes limits the disk space of worktrees and mirrors, in bytes, and MinFree is the space
	// that must stay free; 0: no limit. Beyond these limits no worktree is created.
	MaxBytes, MinFree int64
}

// Bounds on the work around a run.
const (
	setupTimeout   = 10 * time.Minute // of each command of Workspace.Setup
	changesTimeout = time.Minute      // for reading what a run changed
	spareWorktrees = 8                // empty worktrees kept for conversations that may continue
	tidyEvery      = 10 * time.Minute // at most
)

// worktree is the stored state of a worktree: worktrees/<name>/workspace.json, beside the
// folder tree.
type worktree struct {
	Source  string    `json:"source"` // folder in the repository for which it was made
	Sub     string    `json:"sub,omitempty"`
	Branch  string    `json:"branch"`
	Base    string    `json:"base"` // commit from which it was made
	Ready   bool      `json:"ready"`
	Remote  string    `json:"remote,omitempty"` // for a clone
	From    string    `json:"from,omitempty"`   // requested base
	Task    string    `json:"task,omitempty"`   // task for which it was made
	Session string    `json:"session,omitempty"`
	Made    time.Time `json:"made,omitzero"`
	// BaseBranch is the branch whose tip Base was, "" if there was none.
	BaseBranch string `json:"base_branch,omitempty"`
	Turn       *turn  `json:"turn,omitempty"`
}

// turn is the current or last task in a worktree, and the content when its first attempt
// began: changes by an interrupted attempt belong to the task as well.
type turn struct {
	Task   string         `json:"task"`
	Before workspace.Mark `json:"before"`
}

func (d *disk) worktreeDir(name string) string { return filepath.Join(d.dir, "worktrees", name) }

// worktreeOf is the name of the worktree that contains a folder; "" for none.
func (d *disk) worktreeOf(dir string) string {
	rel, err := filepath.Rel(filepath.Join(d.dir, "worktrees"), dir)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	name, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return name
}

func (d *disk) loadWorktree(name string) (w worktree, err error) {
	if err := workspace.RealFolder(d.worktreeDir(name)); err != nil {
		return w, err
	}
	b, err := os.ReadFile(filepath.Join(d.worktreeDir(name), "workspace.json"))
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	return w, err
}

func (d *disk) saveWorktree(name string, w worktree) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return writeDurable(filepath.Join(d.worktreeDir(name), "workspace.json"), b)
}

// touchWorktree records that a worktree is used.
func (d *disk) touchWorktree(name string) error {
	now := time.Now()
	return os.Chtimes(filepath.Join(d.worktreeDir(name), "workspace.json"), now, now)
}

// tree is the top folder of a worktree.
func (d *disk) tree(name string) string { return filepath.Join(d.worktreeDir(name), "tree") }

// checkWorkspace refuses a workspace that is impossible in the agent's
// folder.
func (c *Config) checkWorkspace() error {
	for _, p := range append(c.Workspace.Repos, c.Workspace.Repo) {
		if p != "" && !signalbox.ValidRemotePattern(p) || p == c.Workspace.Repo && p != "" && !signalbox.ValidRemote(p) {
			return fmt.Errorf("workspace.repo is %q: the address of a git repository without a password, or an absolute path", p)
		}
	}
	switch c.Workspace.Kind {
	case workspace.KindFolder:
		return nil
	case workspace.KindWorktree:
	case workspace.KindClone:
		if c.Workspace.Repo == "" {
			return errors.New("workspace is clone, and workspace.repo does not say of what")
		}
		if _, err := exec.LookPath("git"); err != nil {
			return errors.New("workspace is clone, and no git program was found")
		}
		return nil
	default:
		return fmt.Errorf("workspace is %q: folder, worktree or clone", c.Workspace.Kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	if _, err := workspace.Open(ctx, c.WorkDir, c.Environ); err != nil {
		return fmt.Errorf("workspace is worktree, and %s cannot have any: %w", c.WorkDir, err)
	}
	return nil
}

// nameLength is how many characters at the end of a task's ID name its worktree and
// branch: 40 random bits.
const nameLength = 8

// worktreeName is the worktree of the run; "" if it works in a folder. A conversation stays
// in its worktree.
func (r *run) worktreeName() string {
	rec := r.record()
	return r.d.worktreeFor(rec.SessionID, cmp.Or(rec.QueueID, rec.TaskID), rec.Isolated, r.job.place)
}

// worktreeFor is worktreeName for a run that may not have begun.
func (d *Daemon) worktreeFor(session, id string, isolated bool, p place) string {
	if isolated || d.runner.Inside() {
		return ""
	}
	if s, ok := d.disk.loadSession(session); ok {
		return d.disk.worktreeOf(s.Dir)
	}
	if p.kind == workspace.KindFolder {
		return ""
	}
	return nameOf(id)
}

// nameOf is the name of a task's worktree.
func nameOf(id string) string { return strings.Trim(id[max(0, len(id)-nameLength):], "-.") }

// workspaceContext bounds work in a run's workspace, and ends when the run is stopped.
func (r *run) workspaceContext(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	go func() {
		select {
		case <-r.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// enterWorktree creates the worktree of the run or continues in the existing one, and
// sets p.dir to the run's folder in it. The caller holds its lock.
func (r *run) enterWorktree(p *runDirs) error {
	ctx, cancel := r.workspaceContext(setupTimeout)
	defer cancel()
	d, name := r.d, p.worktree
	w, err := d.disk.loadWorktree(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the worktree %s cannot be read: %w", name, err)
	}
	if err != nil {
		rec, at := r.record(), r.job.place
		w = worktree{
			Source: cmp.Or(at.source, d.cfg.WorkDir), Remote: at.remote, From: at.base, Branch: workspace.BranchPrefix + name,
			Task: cmp.Or(rec.QueueID, rec.TaskID), Session: rec.SessionID, Made: time.Now().UTC(),
		}
	}
	if w.Remote != "" {
		if w.Source, err = r.mirror(w.Remote); err != nil {
			return err
		}
	}
	repo, err := workspace.Open(ctx, w.Source, d.cfg.Environ)
	if err != nil {
		return fmt.Errorf("%s can have no worktree: %w; name another repo, or let the task work in the folder (workspace: folder)", w.Source, err)
	}
	p.kind = w.place().kind
	tree := d.disk.tree(name)
	if _, err := os.Lstat(tree); w.Ready && err == nil {
		t, err := repo.OpenWorktree(ctx, tree)
		if err != nil {
			return fmt.Errorf("the worktree of this conversation is damaged, and what is in it is left alone: %w", err)
		}
		p.dir = filepath.Join(tree, w.Sub)
		return errors.Join(t.Unlock(w.Branch), d.disk.touchWorktree(name))
	}
	if err := repo.RemoveWorktree(ctx, tree); err != nil { // no run has used it, or it is gone
		return err
	}
	if w.Sub, err = filepath.Rel(repo.Dir, w.Source); err != nil {
		return err
	}
	w.Ready = false
	if w.Branch, err = repo.FreeBranch(ctx, w.Branch); err != nil { // another agent may have begun the task
		return err
	}
	if w.Base == "" {
		if w.BaseBranch = w.From; w.Remote == "" {
			w.BaseBranch = repo.BranchAt(ctx, w.From)
		}
		if w.Base, err = w.base(ctx, repo); err != nil {
			return err
		}
	}
	if err := d.disk.saveWorktree(name, w); err != nil {
		return err
	}
	t, err := repo.AddWorktree(ctx, tree, w.Branch, w.Base)
	if err != nil {
		return err
	}
	p.dir = filepath.Join(tree, w.Sub)
	if err := r.setUp(ctx, repo, t, *p); err != nil {
		return err
	}
	w.Ready = true
	fmt.Fprintf(r.log, "[signalbox] works in a worktree on branch %s, made from %s\n", w.Branch, w.Base[:min(len(w.Base), 12)])
	return d.disk.saveWorktree(name, w)
}

// base is the commit from which a worktree is made.
func (w *worktree) base(ctx context.Context, repo *workspace.Repo) (string, error) {
	if w.Remote != "" {
		return repo.RemoteCommit(ctx, w.From, w.Remote)
	}
	return repo.Commit(ctx, w.From)
}

// setUp copies files and runs the commands of Workspace.Setup.
func (r *run) setUp(ctx context.Context, repo, tree *workspace.Repo, p runDirs) error {
	c := r.d.cfg.Workspace
	_, refused, err := repo.Carry(ctx, tree, c.Carry)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		r.logNote("not copied, because git does not ignore them and they could be committed: %s", strings.Join(refused, ", "))
	}
	for _, command := range c.Setup {
		if err := r.setUpCommand(command, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) setUpCommand(command string, p runDirs) error {
	log := r.newRedactor(r.log)
	fmt.Fprintf(r.log, "[signalbox] %s\n", command)
	child, err := proc.Start(proc.Spec{
		Argv: []string{"sh", "-c", command}, Dir: p.dir, Env: r.d.buildEnv(p.home, r.around(), r.task.Env),
		Stdout: log, Stderr: log, Mark: r.record().TaskID, Grace: r.d.cfg.KillGrace,
	})
	if err != nil {
		return fmt.Errorf("workspace.setup: %s: %w", command, err)
	}
	over := time.NewTimer(setupTimeout)
	defer over.Stop()
	late := false
	select {
	case <-child.Exited():
	case <-over.C:
		late = true
	case <-r.stopping:
	}
	exit, err := child.End()
	log.end()
	switch {
	case err != nil:
		return err
	case late:
		return fmt.Errorf("workspace.setup: %s was stopped after %s", command, setupTimeout)
	case exit.Code != 0:
		return fmt.Errorf("workspace.setup: %s: %s; the log has what it printed", command, exit)
	}
	return nil
}

// watched is a working tree whose changes by a run are recorded.
type watched struct {
	repo   *workspace.Repo
	before workspace.Mark
}

// watch reads the working tree before a run; nil if there is no repository or it cannot be
// read.
func (r *run) watch(p runDirs) *watched {
	ctx, cancel := r.workspaceContext(changesTimeout)
	defer cancel()
	repo, err := workspace.Open(ctx, p.dir, r.d.cfg.Environ)
	if err == nil {
		var m workspace.Mark
		if m, err = repo.Mark(ctx, r.objects()); err == nil {
			if p.worktree != "" { // a plain folder may be used by others before a killed agent is back
				m, err = r.beginTurn(ctx, repo, p.worktree, m)
			}
		}
		if err == nil {
			return &watched{repo, m}
		}
	}
	if !errors.Is(err, workspace.ErrNone) && ctx.Err() == nil {
		r.logNote("the changes of this run cannot be determined: %v", err)
	}
	os.RemoveAll(r.objects())
	return nil
}

// beginTurn returns the content of the worktree when the first attempt of the task began; now is
// its current content.
func (r *run) beginTurn(ctx context.Context, repo *workspace.Repo, name string, now workspace.Mark) (workspace.Mark, error) {
	w, err := r.d.disk.loadWorktree(name)
	if err != nil {
		return now, err
	}
	rec := r.record()
	id := cmp.Or(rec.QueueID, rec.TaskID)
	if w.Turn != nil && w.Turn.Task == id && repo.HasTree(ctx, w.Turn.Before.Tree) {
		return w.Turn.Before, nil
	}
	w.Turn = &turn{id, now}
	return now, r.d.disk.saveWorktree(name, w)
}

func (r *run) objects() string   { return filepath.Join(r.d.disk.runDir(r.record().TaskID), "objects") }
func (r *run) patchPath() string { return filepath.Join(r.d.disk.runDir(r.record().TaskID), "patch") }

// changes returns the changes of an ended run, none of whose processes is alive. In a
// worktree it first commits everything.
func (r *run) changes(w *watched, p runDirs) *api.Changes {
	if w == nil {
		return nil
	}
	defer os.RemoveAll(r.objects())
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	c, err := r.readChanges(ctx, w, p)
	if err != nil {
		r.logNote("the changes of this run cannot be determined: %v", err)
		return nil
	}
	return c
}

func (r *run) readChanges(ctx context.Context, w *watched, p runDirs) (*api.Changes, error) {
	after, err := w.repo.Mark(ctx, r.objects())
	if p.worktree != "" { // even if the changes cannot be determined
		rec := r.record()
		made, lerr := r.d.disk.loadWorktree(p.worktree)
		if err = errors.Join(err, lerr); lerr == nil {
			err = errors.Join(err, r.d.commitWork(ctx, w.repo, made, cmp.Or(rec.QueueID, rec.TaskID)))
		}
	}
	if err != nil {
		return nil, err
	}
	c, err := w.repo.Changes(ctx, w.before, after, r.objects(), r.patchPath())
	if err == nil && p.worktree != "" {
		c.Workspace, c.Head = p.kind, w.repo.Head(ctx)
		c.Commits = w.repo.Commits(ctx, c.Base, c.Head)
		if made, err := r.d.disk.loadWorktree(p.worktree); err == nil {
			c.BaseBranch = made.BaseBranch
		}
	}
	return c, err
}

// tidyWorktrees removes worktrees whose content exists elsewhere in their repository, except
// for the spare most recently used ones. Without proof a worktree stays.
func (d *Daemon) tidyWorktrees(spare int) {
	d.careMu.Lock()
	defer d.careMu.Unlock()
	names := d.disk.worktreeNames()
	for _, name := range names[min(spare, len(names)):] {
		if err := d.tidyWorktree(name); err != nil {
			d.cfg.Logger.Warn("a possibly unused worktree was kept", "worktree", name, "error", err)
		}
	}
}

func (d *Daemon) tidyWorktree(name string) error {
	lock, ok, err := tryLockDir(d.disk.worktreeDir(name))
	if err != nil || !ok {
		return err
	}
	defer lock.release()
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	w, err := d.disk.loadWorktree(name)
	if err != nil {
		return err
	}
	a, err := d.appraise(ctx, name, w)
	if err != nil || a.Any() || a.recent {
		return err
	}
	_, err = d.removeWorktree(ctx, name, w, &a, false)
	return err
}

// withPatch adds the beginning of the patch to the changes of an ended run.
func (r *run) withPatch(c *api.Changes) (*api.Changes, error) {
	if c == nil || c.PatchBytes == 0 {
		return c, nil
	}
	text, err := readHead(r.patchPath(), api.MaxPatch+1)
	if err != nil {
		return nil, err
	}
	told := *c
	told.Patch = workspace.WholeFiles(text)
	return &told, nil
}
