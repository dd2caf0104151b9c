package agentd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/checks"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Landing says how the work of worktrees lands if a task does not say.
type Landing struct {
	Method      string // rebase (default): every commit; squash: one commit
	FastForward bool   // a clean checkout of the branch is fast-forwarded
	Hooks       bool   // the repository's hooks run
}

// Bounds of landing.
const (
	landingsKept  = 50        // per worktree and branch, in its file
	landedKept    = time.Hour // how long a worktree stays after landing, so that a director that missed the result can ask for it
	landingDetail = 16 << 10  // output of a failed landing, in bytes
)

// checkLand refuses a landing with invalid parameters. Messages name the field.
func (d *Daemon) checkLand(t *api.AgentTask) *refusal {
	l := t.Land
	switch {
	case l == nil:
		return nil
	case !t.Isolated:
		return invalid("land needs isolated: it is no turn of a conversation")
	case !validQueueID(l.Task):
		return invalid("land.task must be the queue_id of the task whose work lands: 1 to 200 letters, digits, '.', '_', ':' or '-'")
	case l.SessionID != "" && !validSession(l.SessionID):
		return invalid("land.session_id must be 1 to 128 letters, digits, '.', '_' or '-', begin with a letter or digit and not contain '..'")
	case len(l.Title) > 200 || strings.ContainsFunc(l.Title, isControl):
		return invalid("land.title is one line of at most 200 bytes")
	}
	if err := (&signalbox.LandWish{Onto: l.Onto, Method: l.Method}).Validate("onto"); err != nil {
		return invalid("land: %v", err)
	}
	return nil
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// landingsPath is the file with the landings of one worktree onto one branch.
func (d *disk) landingsPath(worktree, onto, remote string) string {
	return filepath.Join(d.worktreeDir(worktree), "landed-"+workspace.BranchKey(onto, remote)+".json")
}

func loadLandings(path string) (all []workspace.Landed, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// landed returns the commits of a worktree that have landed, whatever their IDs on the branch,
// and whether one has landed recently.
func (d *Daemon) landed(ctx context.Context, repo *workspace.Repo, name string) (commits []string, recent bool) {
	files, err := filepath.Glob(filepath.Join(d.disk.worktreeDir(name), "landed-*.json"))
	if err != nil {
		return nil, true
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil || time.Since(st.ModTime()) < landedKept {
			recent = true
		}
		past, err := loadLandings(f)
		if err != nil {
			d.cfg.Logger.Warn("which work of a worktree has landed is unknown", "error", err)
			continue
		}
		for _, p := range past {
			if at, err := repo.Tip(ctx, p.Onto, p.Remote); err == nil && repo.Contains(ctx, at, p.Commit) {
				commits = append(commits, p.Work)
			}
		}
	}
	return commits, recent
}

// land carries out a landing.
func (r *run) land() outcome {
	r.until = time.Now().Add(r.job.timeout)
	over := time.AfterFunc(r.job.timeout, func() { r.requestStop(r.overLimit()) })
	defer over.Stop()
	ctx, cancel := r.workspaceContext(r.job.timeout)
	defer cancel()
	var v outcome
	err := r.landWork(ctx, &v)
	if err == nil {
		v.state, v.out.Output = stateCompleted, fmt.Sprintf("landed on %s as %s", v.landed.Onto, v.landed.Commit)
		if v.landed.URL != "" {
			v.out.Output = "pull request " + v.landed.URL
		}
		return v
	}
	v.state, v.errType, v.message = stateFailed, "land_failed", err.Error()
	if alive, ok := errors.AsType[*checks.AliveError](err); ok {
		v.errType, v.alive = "unkillable", alive.Alive
		v.message = "the checks were stopped, but " + alive.Error() + "; the slot stays occupied until they end"
	} else if e, ok := errors.AsType[*workspace.LandError](err); ok {
		v.errType, v.out.Output = e.Kind, e.Detail[:min(len(e.Detail), landingDetail)]
	} else if s := r.stopReason(); s != nil {
		stopped := s.verdict(runner.Outcome{})
		stopped.checks = v.checks
		return stopped
	}
	return v
}

func refuseLanding(format string, args ...any) error {
	return &workspace.LandError{Kind: workspace.LandRefused, Text: fmt.Sprintf(format, args...)}
}

// landsFrom returns the worktree whose work the run lands.
func (r *run) landsFrom() (string, worktree, error) {
	d, l := r.d, r.task.Land
	names := []string{nameOf(l.Task)}
	if s, ok := d.disk.loadSession(l.SessionID); ok && l.SessionID != "" {
		names = []string{d.disk.worktreeOf(s.Dir), names[0]}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		w, err := d.disk.loadWorktree(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return name, w, err
		}
	}
	return "", worktree{}, refuseLanding("the agent has no worktree of %s: what ran in the agent's folder is there already, and a worktree that was removed had nothing that has not landed", l.Task)
}

// landWork lands the work of a worktree. The worktree is locked only until the commits to
// land are known: then a later turn may continue in it.
func (r *run) landWork(ctx context.Context, v *outcome) error {
	name, w, err := r.landsFrom()
	if err != nil {
		return err
	}
	repo, err := workspace.Open(ctx, w.Source, r.d.cfg.Environ)
	if err != nil {
		return refuseLanding("the repository of the worktree, %s, cannot be opened: %v", w.Source, err)
	}
	work, err := r.workOf(ctx, repo, name, w)
	if err != nil {
		return err
	}
	return r.landOnto(ctx, repo, name, w, work, v)
}

// workOf returns the commit that has all the work of a worktree.
func (r *run) workOf(ctx context.Context, repo *workspace.Repo, name string, w worktree) (string, error) {
	locks, err := r.lock([]string{r.d.disk.worktreeDir(name)})
	if err != nil {
		return "", refuseLanding("another turn of the conversation is running in the worktree: land when it has ended (%v)", err)
	}
	defer releaseAll(locks)
	if _, err := os.Lstat(r.d.disk.tree(name)); errors.Is(err, fs.ErrNotExist) {
		if at, err := repo.Commit(ctx, "refs/heads/"+w.Branch); err == nil {
			return at, nil
		}
		return "", refuseLanding("the worktree of %s is gone, and so is its branch %s", r.task.Land.Task, w.Branch)
	}
	tree, err := repo.OpenWorktree(ctx, r.d.disk.tree(name))
	if err != nil {
		return "", refuseLanding("the worktree of %s is damaged: %v; its branch is %s", r.task.Land.Task, err, w.Branch)
	}
	return tree.Work(ctx)
}

// landOnto lands a commit on the branch that the task names. A lock serializes landings
// onto one branch for all agents of this host.
func (r *run) landOnto(ctx context.Context, repo *workspace.Repo, name string, w worktree, work string, v *outcome) error {
	d, t := r.d, r.task.Land
	l := workspace.Landing{
		Work: work, Task: t.Task, Onto: t.Onto, Method: cmp.Or(t.Method, d.cfg.Landing.Method, workspace.MethodRebase),
		FastForward: t.FastForward || d.cfg.Landing.FastForward, Hooks: d.cfg.Landing.Hooks, Title: t.Title,
		Trailers: []string{"Signalbox-Task: " + t.Task, fmt.Sprintf("Co-authored-by: %s <%s@signalbox.local>", d.cfg.Name, d.cfg.Name)},
		Prepare: func(ctx context.Context, tree *workspace.Repo) error {
			return r.setUp(ctx, repo, tree, r.landDirs(tree, w, name))
		},
		Check: func(_ context.Context, tree *workspace.Repo, earlier bool) (string, error) {
			said, err := r.checkLanding(tree, r.landDirs(tree, w, name))
			if !earlier {
				v.checks = said
			}
			if said == nil {
				return "", err
			}
			return said.State, err
		},
		Log: r.logNote,
	}
	if w.Remote != "" { // the branches of a mirror belong to worktrees only
		l.Remote, l.Address = workspace.Origin, w.Remote
	}
	path := d.disk.landingsPath(name, t.Onto, l.Remote)
	if t.Onto == api.LandPR {
		l.Onto, path = w.Branch, filepath.Join(d.disk.worktreeDir(name), "proposed.json")
	}
	lock, err := repo.LockDir(l.Onto, l.Remote)
	if err != nil {
		return err
	}
	locks, err := r.lock([]string{lock})
	if err != nil {
		return refuseLanding("another landing on %s goes on: try again (%v)", l.Onto, err)
	}
	defer releaseAll(locks)
	if l.Past, err = loadLandings(path); err != nil {
		return err
	}
	l.Dir = d.disk.landingTree(name, l.Onto, l.Remote)
	l.Intend = func(next workspace.Landed) error {
		all := append(l.Past, next)
		b, err := json.Marshal(all[max(0, len(all)-landingsKept):])
		if err == nil {
			err = writeDurable(path, b)
		}
		if err == nil && t.Onto != api.LandPR {
			err = r.change(func(rec *record) { rec.Landing = &landing{Worktree: name, Landed: next} })
		}
		return err
	}
	if t.Onto == api.LandPR {
		done, url, err := repo.Propose(ctx, l, w.From)
		if err == nil {
			v.landed = landedOn(done)
			v.landed.Was, v.landed.URL = "", url
		}
		return err
	}
	done, err := repo.Land(ctx, l)
	if err != nil {
		return err
	}
	r.logNote("%s is at %s", done.Onto, done.Commit)
	v.landed = landedOn(done)
	return nil
}

func landedOn(l workspace.Landed) *api.AgentLanded {
	return &api.AgentLanded{Onto: l.Onto, Commit: l.Commit, Was: l.Was, Commits: l.Commits, Checked: l.Checked}
}

// landing is the intent of a landing, stored before it starts.
type landing struct {
	Worktree string           `json:"worktree"` // whose work lands
	Landed   workspace.Landed `json:"landed"`
}

// finishLanding ends an interrupted landing as completed if its branch had moved before the
// interruption.
func (d *Daemon) finishLanding(rec *record) {
	if rec.Landing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	l := rec.Landing.Landed
	w, err := d.disk.loadWorktree(rec.Landing.Worktree)
	if err != nil {
		return
	}
	repo, err := workspace.Open(ctx, w.Source, d.cfg.Environ)
	if err != nil {
		return
	}
	if at, err := repo.Tip(ctx, l.Onto, l.Remote); err == nil && repo.Contains(ctx, at, l.Commit) {
		rec.State, rec.Error, rec.Landed = stateCompleted, nil, landedOn(l)
	}
}

// landingTree is the folder in which the work of a worktree is rebuilt on a branch.
func (d *disk) landingTree(worktree, onto, remote string) string {
	return filepath.Join(d.dir, "landings", worktree+"@"+workspace.BranchKey(onto, remote))
}

// clearLandings removes what interrupted landings left behind. No process of theirs is
// alive.
func (d *Daemon) clearLandings() {
	entries, err := os.ReadDir(filepath.Join(d.disk.dir, "landings"))
	if err != nil {
		return // there were none
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), "@")
		dir := filepath.Join(d.disk.dir, "landings", e.Name())
		w, err := d.disk.loadWorktree(name)
		if err == nil {
			var repo *workspace.Repo
			if repo, err = workspace.Open(ctx, w.Source, d.cfg.Environ); err == nil {
				err = repo.RemoveWorktree(ctx, dir)
			}
		}
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			d.cfg.Logger.Warn("the remains of an interrupted landing cannot be removed", "folder", dir, "error", err)
		}
	}
}

// landDirs are the folders for programs that run in the worktree of a
// landing.
func (r *run) landDirs(tree *workspace.Repo, w worktree, name string) runDirs {
	return runDirs{home: r.d.cfg.Home, dir: filepath.Join(tree.Dir, w.Sub), worktree: name}
}

// checkLanding runs the checks on the result of a landing; nil if there are
// none.
func (r *run) checkLanding(tree *workspace.Repo, p runDirs) (*api.AgentChecks, error) {
	c := r.checking(p, &watched{repo: tree})
	if len(c.list) == 0 {
		return c.said, nil
	}
	said, err := r.runChecks(p, c)
	if err != nil || !checks.Fails(said.State) {
		return &said, err
	}
	return &said, &workspace.LandError{
		Kind: workspace.LandChecks, Text: fmt.Sprintf("on %s as it is now %s", r.task.Land.Onto, failure(&said)),
		Detail: fmt.Sprintf("Your work was to land on %s, and was put onto what that branch has now.\n", r.task.Land.Onto) + failureTurn(&said, c.list),
	}
}
