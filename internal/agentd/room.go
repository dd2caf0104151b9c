package agentd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// A worktree is made only where there is room for it. Where there is none the agent says that
// it takes no tasks: they wait, and use up no attempt.

const (
	roomKnown   = time.Minute         // for which it counts as known what worktrees take
	roomRetry   = 10 * time.Second    // the same where there is no room
	mirrorKept  = 30 * 24 * time.Hour // for which a mirror stays that no worktree uses
	mirrorSpare = time.Hour           // the same where there is no room: a run may be about to use it
)

// room says how much worktrees take.
type room struct {
	mu     sync.Mutex
	state  roomState
	used   int64         // bytes of worktrees and mirrors, as of a while ago
	wanted bool          // a task was refused for want of room, and there has been none since
	news   chan struct{} // what they take may have changed
}

type roomState int

const (
	roomUnknown roomState = iota // used is yet to be found out
	roomMeasured
)

// bounded reports whether there are bounds on what worktrees take.
func (d *Daemon) bounded() bool {
	c := &d.cfg.Workspace
	return (c.MaxBytes > 0 || c.MinFree > 0) && !d.runner.Inside()
}

// full says why no worktree can be made now; "" if one can.
func (d *Daemon) full() string {
	d.room.mu.Lock()
	used, state := d.room.used, d.room.state
	d.room.mu.Unlock()
	return d.fullWith(used, state)
}

func (d *Daemon) fullWith(used int64, state roomState) string {
	const cure = "; signalbox workspaces lists the worktrees, signalbox workspaces discard NAME removes one"
	c := &d.cfg.Workspace
	if !d.bounded() {
		return ""
	}
	if free, err := freeBytes(d.disk.dir); err == nil && free < c.MinFree {
		return fmt.Sprintf("no room for worktrees: the disk of %s has %s free, and workspace.min_free is %s%s", d.disk.dir, sizeText(free), sizeText(c.MinFree), cure)
	}
	switch {
	case c.MaxBytes == 0:
	case state == roomUnknown:
		return "it is being found out what its worktrees take on the disk"
	case used >= c.MaxBytes:
		return fmt.Sprintf("no room for worktrees: they take %s, and workspace.max_bytes is %s%s", sizeText(used), sizeText(c.MaxBytes), cure)
	}
	return ""
}

// takesNone says why the agent takes no tasks now, isolated ones apart; "" if it does. An agent
// that works in its folder takes them until one of them needs a worktree.
func (d *Daemon) takesNone() string {
	why := d.full()
	d.room.mu.Lock()
	defer d.room.mu.Unlock()
	if why == "" {
		d.room.wanted = false
	}
	if d.cfg.Workspace.Kind == workspace.KindFolder && !d.room.wanted {
		return ""
	}
	return why
}

// noRoomFor says why a task cannot have the worktree that it needs; "" if it can, or needs none
// that is not there yet.
func (d *Daemon) noRoomFor(t *api.AgentTask, p place) string {
	name := d.worktreeFor(t.SessionID, cmp.Or(t.QueueID, "new-task"), t.Isolated, p)
	if name == "" || workspace.RealFolder(d.disk.tree(name)) == nil {
		return ""
	}
	return d.full()
}

// refuseForRoom refuses a task, which waits then.
func (d *Daemon) refuseForRoom(why string) *refusal {
	d.room.mu.Lock()
	d.room.wanted = true
	d.room.mu.Unlock()
	d.lookForRoom()
	return refuse(http.StatusConflict, "workspace_full", "%s", why)
}

// lookForRoom has it found out soon whether there is room.
func (d *Daemon) lookForRoom() {
	select {
	case d.room.news <- struct{}{}:
	default: // it will be anyway
	}
}

// keepRoom measures what worktrees take, and removes what is of no use, until the agent ends.
func (d *Daemon) keepRoom() {
	told, tidied := "not looked yet", time.Time{}
	for {
		used := d.measure()
		if d.fullWith(used, roomMeasured) != "" && time.Since(tidied) >= roomKnown {
			tidied = time.Now() // it looks through all of them
			used = d.makeRoom()
		}
		d.room.mu.Lock()
		d.room.used, d.room.state = used, roomMeasured
		d.room.mu.Unlock()
		why := d.takesNone()
		if why != told {
			told = why
			d.mu.Lock()
			d.notify()
			d.mu.Unlock()
		}
		wait := time.NewTimer(roomKnown)
		if why != "" {
			wait.Reset(roomRetry)
		}
		select {
		case <-wait.C:
		case <-d.room.news:
			tidied = time.Time{}
		case <-d.open.Done():
			wait.Stop()
			return
		}
		wait.Stop()
	}
}

// makeRoom removes worktrees in which nothing is that is not elsewhere, and mirrors of which the
// same is true, and returns what is left of them.
func (d *Daemon) makeRoom() int64 {
	d.tidyWorktrees(0)
	d.tidyMirrors(mirrorSpare)
	return d.measure()
}

// measure is what worktrees and mirrors take, in bytes.
func (d *Daemon) measure() (used int64) {
	for _, dir := range []string{"worktrees", "mirrors"} {
		entries, err := os.ReadDir(filepath.Join(d.disk.dir, dir))
		if err != nil {
			continue // there is none yet
		}
		for _, e := range entries {
			n, _ := d.sizes.of(d.open, filepath.Join(d.disk.dir, dir, e.Name()))
			used += n
		}
	}
	return used
}

// mirrors lists those of remotes, with the number of worktrees that are made from each.
func (d *Daemon) mirrors(ctx context.Context) (list []api.AgentMirror, dirs []string) {
	used := map[string]int{}
	for _, name := range d.disk.worktreeNames() {
		if w, err := d.disk.loadWorktree(name); err == nil && w.Remote != "" {
			used[w.Remote]++
		}
	}
	found, err := filepath.Glob(filepath.Join(d.disk.dir, "mirrors", "*", "repo"))
	if err != nil {
		return nil, nil // the pattern is one
	}
	for _, dir := range found {
		around := filepath.Dir(dir)
		st, err := os.Lstat(around)
		if err != nil || workspace.RealFolder(around) != nil || workspace.RealFolder(dir) != nil {
			continue
		}
		m := api.AgentMirror{LastUsedAt: st.ModTime().UTC()}
		m.Bytes, _ = d.sizes.of(ctx, around)
		if repo, err := workspace.OpenTree(ctx, dir, d.cfg.Environ); err == nil {
			m.Repo = repo.OriginURL(ctx)
		}
		m.Worktrees = used[m.Repo]
		list, dirs = append(list, m), append(dirs, dir)
	}
	return list, dirs
}

// tidyMirrors removes mirrors that no worktree has used for so long, and that have nothing
// which their remote had not when it was fetched last. What cannot be proved stays.
func (d *Daemon) tidyMirrors(unused time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	list, dirs := d.mirrors(ctx)
	for i, m := range list {
		if m.Worktrees > 0 || m.Repo == "" || time.Since(m.LastUsedAt) < unused {
			continue
		}
		if err := d.tidyMirror(ctx, dirs[i]); err != nil {
			d.cfg.Logger.Warn("a mirror that may be of no use stays", "repo", m.Repo, "error", err)
		}
	}
}

func (d *Daemon) tidyMirror(ctx context.Context, dir string) error {
	lock, ok, err := tryLockDir(filepath.Dir(dir))
	if err != nil || !ok {
		return err
	}
	defer lock.release()
	defer d.sizes.forget(filepath.Dir(dir))
	repo, err := workspace.OpenTree(ctx, dir, d.cfg.Environ)
	if err != nil {
		return err
	}
	worktrees, err := repo.Worktrees(ctx)
	if err != nil {
		return err
	}
	for _, w := range worktrees {
		if _, err := os.Lstat(w); !errors.Is(err, os.ErrNotExist) {
			return nil // it lands something
		}
	}
	if own, err := repo.HasOwn(ctx); own || err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	text := strconv.FormatInt(n, 10) + " bytes"
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size := float64(n) / float64(int64(1)<<(10*(i+1))); size >= 1 {
			text = fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	return text
}
