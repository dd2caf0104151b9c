package proc

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// entry is one row of the process table.
type entry struct {
	pid, ppid, pgid, sid int
	start                uint64
	zombie               bool
}

// kin is a program and everything that belongs to it (see doc.go).
type kin struct {
	id Ident

	mu     sync.Mutex
	known  map[int]uint64 // pid → start time of all that were ever seen
	last   []entry        // what the last look found
	stamp  stamp          // of what it starts; 0 none
	keeps  bool           // orphans that nobody can be shown to have left are its own
	strict bool           // trust the group only while its leader is seen: it was not watched all along
	spare  bool           // the leader only holds a sandbox: SIGTERM would take the run down at once
}

func newKin(id Ident) *kin { return &kin{id: id, known: map[int]uint64{id.PID: id.Start}} }

// look reads the process table and returns the members that are in it,
// zombies included.
func (k *kin) look() []entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, byPID := k.table()
	if _, ok := byPID[os.Getpid()]; !ok {
		k.last = k.blind()
		return k.last
	}
	// The kernel gives no pid away that still names a group or session. If
	// the leader's pid is another's now, the group is empty.
	leader, seen := byPID[k.id.PID]
	group := k.id.PID > 1 // group 0 is the kernel's own
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

// table is the process table, read again where a parent was gone by the time it
// was its turn: its child may have been handed to this process since.
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

// blind answers where the process table cannot be read: what the group says
// about itself, lest "not seen" be taken for "dead".
func (k *kin) blind() []entry {
	if k.id.PID <= 1 || !groupLives(k.id.PID) {
		return nil
	}
	return []entry{{pid: k.id.PID, pgid: k.id.PID, start: k.id.Start}}
}

// alive lists the members that live; a zombie does not.
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

// signal sends to the group as one, which no fork can outrun, and to each
// member outside it.
func (k *kin) signal(sig syscall.Signal) {
	for _, e := range k.look() {
		if e.zombie || k.spare && sig != syscall.SIGKILL && e.pid == k.id.PID {
			continue
		}
		if e.pgid == k.id.PID && e.pgid > 1 && (!k.spare || sig == syscall.SIGKILL) {
			signalGroup(k.id.PID, sig) // gone by now is fine
			continue
		}
		signalOne(e, sig)
	}
}

// signalOne holds the process by a handle (a pidfd where there is one)
// before it checks that it is still the one it means.
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

// reap collects dead orphans that were handed to this process, perhaps since the
// last look found them. The leader is left to exec.Cmd.
func (k *kin) reap() {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	for _, e := range last {
		if e.zombie && e.pid != k.id.PID { // an error says that it is not handed to us
			reapOrphan(e.pid)
		}
	}
}

// Clear ends what lives of a program that another process started, and
// returns once nothing of it does. A pid that has gone to another program, or
// an Ident of an earlier boot, is left alone.
func Clear(id Ident, grace time.Duration) error {
	if id.Boot != "" && id.Boot != bootID() {
		return nil
	}
	k := newKin(id)
	k.strict = marksReadable
	return k.ending().end(grace)
}

// Alive lists what lives of a program that another process started.
func Alive(id Ident) []int {
	if id.Boot != "" && id.Boot != bootID() {
		return nil
	}
	k := newKin(id)
	k.strict = marksReadable
	return k.alive()
}

// looks lets those share a look at all processes who want one at the same time:
// it costs as much as all else of a short run together.
var looks struct {
	reading sync.Mutex // held while the table is read

	mu   sync.Mutex
	next *look // which has not begun; nil: none is wanted
}

type look struct {
	once sync.Once
	all  []entry
}

// seen is the process table, read from its begin to its end after the call
// began. It is shared: nobody changes it.
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
		looks.next = nil // what is asked for from now on is a later one
		looks.mu.Unlock()
		l.all = table()
	})
	return l.all
}
