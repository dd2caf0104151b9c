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

// A worktree is created only if there is room for it. Without room the agent reports that it
// takes no tasks: they wait, without using up an attempt.

const (
	roomKnown   = time.Minute         // how long a measurement stays valid
	roomRetry   = 10 * time.Second    // the same without room
	mirrorKept  = 30 * 24 * time.Hour // how long an unused mirror is kept
	mirrorSpare = time.Hour           // the same without room: a run may be about to use it
)

// room records how much disk space worktrees use.
type room struct {
	mu     sync.Mutex
	state  roomState
	used   int64         // bytes in worktrees and mirrors, at the last measurement
	wanted bool          // a task was refused for lack of room, and there has been none since
	news   chan struct{} // the used space may have changed
}

type roomState int

const (
	roomUnknown roomState = iota // used is not measured yet
	roomMeasured
)

// bounded reports whether the space for worktrees is limited.
func (d *Daemon) bounded() bool {
	c := &d.cfg.Workspace
	return (c.MaxBytes > 0 || c.MinFree > 0) && !d.runner.Inside()
}

// full says why no worktree can be created now; "" if one can.
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

// takesNone says why the agent takes no tasks now, except isolated ones; "" if it does. An
// agent that works in its folder takes tasks until one of them needs a worktree.
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

// noRoomFor says why a task cannot get the worktree that it needs; "" if it can, needs none, or
// its worktree exists.
func (d *Daemon) noRoomFor(t *api.AgentTask, p place) string {
	name := d.worktreeFor(t.SessionID, cmp.Or(t.QueueID, "new-task"), t.Isolated, p)
	if name == "" || workspace.RealFolder(d.disk.tree(name)) == nil {
		return ""
	}
	return d.full()
}

// refuseForRoom refuses a task, which then waits.
func (d *Daemon) refuseForRoom(why string) *refusal {
	d.room.mu.Lock()
	d.room.wanted = true
	d.room.mu.Unlock()
	d.lookForRoom()
	return refuse(http.StatusConflict, "workspace_full", "%s", why)
}

// lookForRoom requests a new measurement.
func (d *Daemon) lookForRoom() {
	select {
	case d.room.news <- struct{}{}:
	default: // one is already requested
	}
}

// keepRoom measures the used space and removes what is not needed, until the agent ends.
func (d *Daemon) keepRoom() {
	told, tidied := "not looked yet", time.Time{}
	for {
		used := d.measure()
		if d.fullWith(used, roomMeasured) != "" && time.Since(tidied) >= roomKnown {
			tidied = time.Now() // it inspects all of them
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

// makeRoom removes worktrees and mirrors whose content exists elsewhere, and returns the bytes
// that are still used.
func (d *Daemon) makeRoom() int64 {
	d.tidyWorktrees(0)
	d.tidyMirrors(mirrorSpare)
	return d.measure()
}

// measure returns the size of worktrees and mirrors, in bytes.
func (d *Daemon) measure() (used int64) {
	for _, dir := range []string{"worktrees", "mirrors"} {
		entries, err := os.ReadDir(filepath.Join(d.disk.dir, dir))
		if err != nil {
			continue // it does not exist yet
		}
		for _, e := range entries {
			n, _ := d.sizes.of(d.open, filepath.Join(d.disk.dir, dir, e.Name()))
			used += n
		}
	}
	return used
}

// mirrors lists the mirrors of remotes, with the number of worktrees made from each.
func (d *Daemon) mirrors(ctx context.Context) (list []api.AgentMirror, dirs []string) {
	used := map[string]int{}
	for _, name := range d.disk.worktreeNames() {
		if w, err := d.disk.loadWorktree(name); err == nil && w.Remote != "" {
			used[w.Remote]++
		}
	}
	found, err := filepath.Glob(filepath.Join(d.disk.dir, "mirrors", "*", "repo"))
	if err != nil {
		return nil, nil // the pattern is valid
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

// tidyMirrors removes mirrors that no worktree has used for so long, if their remote had
// everything in them at the last fetch. Without proof a mirror stays.
func (d *Daemon) tidyMirrors(unused time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	list, dirs := d.mirrors(ctx)
	for i, m := range list {
		if m.Worktrees > 0 || m.Repo == "" || time.Since(m.LastUsedAt) < unused {
			continue
		}
		if err := d.tidyMirror(ctx, dirs[i]); err != nil {
			d.cfg.Logger.Warn("a possibly unused mirror was kept", "repo", m.Repo, "error", err)
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
			return nil // a landing is using it
		}
	}
	if own, err := repo.HasOwn(ctx); own || err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// sizeText formats a number of bytes for people.
func sizeText(n int64) string {
	text := strconv.FormatInt(n, 10) + " bytes"
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size := float64(n) / float64(int64(1)<<(10*(i+1))); size >= 1 {
			text = fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	return text
}
