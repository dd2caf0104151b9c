package proc

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// entry is an entry of the process table.
type entry struct {
	pid, ppid, pgid, sid int
	start                uint64
	zombie               bool
}

// kin is a program and all processes that belong to it (see doc.go).
type kin struct {
	id Ident

	mu     sync.Mutex
	known  map[int]uint64 // PID → start time of all processes ever seen
	last   []entry        // what the last scan found
	stamp  stamp          // stamp of its processes; 0: none
	keeps  bool           // orphans whose origin is unknown count as its own
	strict bool           // trust the group only while its leader is visible: it was not watched from the start
	spare  bool           // the leader only holds a sandbox: SIGTERM would end the run at once
}

func newKin(id Ident) *kin { return &kin{id: id, known: map[int]uint64{id.PID: id.Start}} }

// look reads the process table and returns the members that are in it,
// including zombies.
func (k *kin) look() []entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, byPID := k.table()
	if _, ok := byPID[os.Getpid()]; !ok {
		k.last = k.blind()
		return k.last
	}
	// The kernel reuses no PID that is still the ID of a group or session. If the
	// leader's PID belongs to another process, the group is empty.
	leader, seen := byPID[k.id.PID]
	group := k.id.PID > 1 // group 0 belongs to the kernel
	if seen && leader.start != k.id.Start {
		group = false
	}
	if k.strict && !seen {
		group = false
	}
	in := map[int]bool{}
	for _, e := range all {
		if start, ok := k.known[e.pid]; ok && start == e.start {
			in[e.pid] = true
		} else if group && (e.pgid == k.id.PID || e.sid == k.id.PID) {
			in[e.pid] = true
		} else if e.start >= k.id.Start && !e.zombie && marked(e.pid, k.id.Mark) {
			in[e.pid] = true
		}
	}
	if self := byPID[os.Getpid()]; k.keeps {
		for _, e := range all {
			if !in[e.pid] && left(e, k.id, k.stamp, self.sid) {
				in[e.pid] = true
			}
		}
	}
	for grew := true; grew; {
		grew = false
		for _, e := range all {
			if !in[e.pid] && in[e.ppid] && e.pid != os.Getpid() {
				in[e.pid], grew = true, true
			}
		}
	}
	var out []entry
	for pid := range in {
		if pid == os.Getpid() || pid <= 1 {
			continue
		}
		out = append(out, byPID[pid])
		k.known[pid] = byPID[pid].start
	}
	k.last = out
	return out
}

// table is the process table. It is read again if a parent had ended before its
// entry was read: its child may have become a child of this process since.
func (k *kin) table() (all []entry, byPID map[int]entry) {
	for range 3 {
		all = seen()
		byPID = make(map[int]entry, len(all))
		for _, e := range all {
			byPID[e.pid] = e
		}
		torn := slices.ContainsFunc(all, func(e entry) bool {
			_, there := byPID[e.ppid]
			return !there && e.ppid != 0 && e.start >= k.id.Start
		})
		if !torn || !k.keeps {
			break
		}
	}
	return all, byPID
}

// blind is used if the process table cannot be read. It asks the group, so
// that "not seen" does not count as "dead".
func (k *kin) blind() []entry {
	if k.id.PID <= 1 || !groupLives(k.id.PID) {
		return nil
	}
	return []entry{{pid: k.id.PID, pgid: k.id.PID, start: k.id.Start}}
}

// alive lists the living members; zombies do not count.
func (k *kin) alive() []int {
	var pids []int
	for _, e := range k.look() {
		if !e.zombie {
			pids = append(pids, e.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// signal sends to the whole group at once, which no fork can escape, and to
// each member outside it.
func (k *kin) signal(sig syscall.Signal) {
	for _, e := range k.look() {
		if e.zombie || k.spare && sig != syscall.SIGKILL && e.pid == k.id.PID {
			continue
		}
		if e.pgid == k.id.PID && e.pgid > 1 && (!k.spare || sig == syscall.SIGKILL) {
			signalGroup(k.id.PID, sig) // the group may be gone
			continue
		}
		signalOne(e, sig)
	}
}

// signalOne opens a handle of the process (a pidfd if available) before it
// checks that the process is still the same.
func signalOne(e entry, sig syscall.Signal) {
	p, err := os.FindProcess(e.pid)
	if err != nil {
		return
	}
	defer p.Release()
	if Identify(e.pid).Start == e.start {
		_ = p.Signal(sig)
	}
}

// reap collects zombies of orphans that became children of this process,
// possibly since the last scan. The leader is left to exec.Cmd.
func (k *kin) reap() {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	for _, e := range last {
		if e.zombie && e.pid != k.id.PID { // an error means that it is not our child
			reapOrphan(e.pid)
		}
	}
}

// Clear ends the living processes of a program that another process started,
// and returns once none is alive. If the PID was reused by another program,
// or the Ident is from an earlier boot, it does nothing.
func Clear(id Ident, grace time.Duration) error {
	if id.Boot != "" && id.Boot != bootID() {
		return nil
	}
	k := newKin(id)
	k.strict = marksReadable
	return k.ending().end(grace)
}

// Alive lists the living processes of a program that another process started.
func Alive(id Ident) []int {
	if id.Boot != "" && id.Boot != bootID() {
		return nil
	}
	k := newKin(id)
	k.strict = marksReadable
	return k.alive()
}

// looks lets concurrent callers share a scan of all processes, which costs as
// much as the rest of a short run.
var looks struct {
	reading sync.Mutex // held while the table is read

	mu   sync.Mutex
	next *look // a scan that has not begun; nil: none is requested
}

type look struct {
	once sync.Once
	all  []entry
}

// seen is the process table, read completely after the call began. It is
// shared and must not be modified.
func seen() []entry {
	looks.mu.Lock()
	l := looks.next
	if l == nil {
		l = &look{}
		looks.next = l
	}
	looks.mu.Unlock()
	l.once.Do(func() {
		looks.reading.Lock()
		defer looks.reading.Unlock()
		looks.mu.Lock()
		looks.next = nil // later requests need a later scan
		looks.mu.Unlock()
		l.all = table()
	})
	return l.all
}
