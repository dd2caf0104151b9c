package confine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Alive lists what lives in the box; ok is false where it cannot know.
func (b *Box) Alive() (pids []int, ok bool) {
	if b.members == nil {
		return nil, false
	}
	some, err := populated(b.members)
	if err != nil {
		return nil, false
	}
	if !some {
		return nil, true
	}
	if pids = b.members.pids(); len(pids) > 0 {
		return pids, true
	}
	// What was there is dying, or hides its list. It is dead when the group says so.
	if some, err = populated(b.members); err == nil && some {
		b.mu.Lock()
		defer b.mu.Unlock()
		return []int{b.leader}, true
	}
	return nil, err == nil
}

func (b *Box) pids() []int {
	pids, _ := b.Alive()
	return pids
}

// populated tells whether anything lives in a group or below it. A zombie does
// not live.
func populated(g *group) (bool, error) {
	text, err := g.read("cgroup.events")
	if err != nil {
		return false, err
	}
	return !strings.Contains(text, "populated 0"), nil
}

// Signal sends to all that lives in the box; SIGKILL reaches also what is
// forked meanwhile. Another signal spares a program that only holds the
// sandbox: it would take the run down with it at once.
func (b *Box) Signal(sig syscall.Signal) error {
	if b.members == nil {
		return fmt.Errorf("confine: without control groups a box cannot be signalled: %w", errors.ErrUnsupported)
	}
	if sig == syscall.SIGKILL {
		return kill(b.members)
	}
	for _, pid := range b.members.pids() {
		if b.Wraps() && pid == b.leader {
			continue
		}
		signalMember(b.members, pid, sig)
	}
	return nil
}

// Wraps tells whether what Start starts only holds the sandbox in which the
// program runs.
func (b *Box) Wraps() bool { return b.kind == bubblewrap }

// signalMember holds a process by a handle before it checks that it is still a
// member: its pid may have gone to another.
func signalMember(g *group, pid int, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) {
			_ = syscall.Kill(pid, sig)
		}
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	for _, now := range g.pids() {
		if now == pid {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0) // gone by now is fine
			return
		}
	}
}

// kill sends SIGKILL so that no fork escapes.
func kill(g *group) error {
	g.noteKill()
	if g.write("cgroup.kill", "1") == nil {
		return nil
	}
	// Before Linux 5.14: what stands still does not fork, and SIGKILL wakes it.
	_ = g.write("cgroup.freeze", "1") // before 5.2 only speed helps
	for _, pid := range g.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = g.write("cgroup.freeze", "0")
	return nil
}

// killGroup kills until nothing lives in a group, or emptyWait is over.
func killGroup(g *group) error {
	deadline := time.Now().Add(emptyWait)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		some, err := populated(g)
		if err != nil {
			return err
		}
		if !some {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v live on after SIGKILL", g.pids())
		}
		_ = kill(g)
		time.Sleep(pause)
	}
}

// empty kills what lives in the box, with proof.
func (b *Box) empty() error {
	if b.members == nil {
		return nil // proc has proven it by other means
	}
	return killGroup(b.members)
}

// renew gives the box another group where the old one was killed: Linux 6.14 to
// at least 6.18 kills at once what is born into a group after that.
func (b *Box) renew() error {
	if b.members == nil || !b.members.wasKilled() {
		return nil
	}
	b.renewed++
	g, err := makeGroup(at(b.h.members, fmt.Sprintf("%s.%d", b.name, b.renewed)))
	if err != nil {
		return err
	}
	old := b.members
	b.mu.Lock()
	b.members = g
	b.mu.Unlock()
	return errors.Join(b.groupKill(), old.remove())
}

// groupKill has a box's processes die together where memory runs out.
func (b *Box) groupKill() error {
	if b.h.by[memory] != byV2 || !b.members.has("memory.oom.group") {
		return nil
	}
	return b.members.write("memory.oom.group", "1")
}
