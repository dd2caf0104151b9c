package proc

import "golang.org/x/sys/unix"

// carrier is the limit that carries a stamp, in how much the soft limit is below
// the hard one: the bytes of POSIX message queues, which next to no program asks
// for, and none by its last kilobytes.
const carrier = unix.RLIMIT_MSGQUEUE

// putStamp gives this process the stamp, for what it starts until restore.
func putStamp(s stamp) (restore func()) {
	var was unix.Rlimit
	if s == 0 || unix.Getrlimit(carrier, &was) != nil || was.Max < 2*stamps {
		return func() {}
	}
	if err := unix.Setrlimit(carrier, &unix.Rlimit{Cur: was.Max - uint64(s), Max: was.Max}); err != nil {
		return func() {}
	}
	return func() { _ = unix.Setrlimit(carrier, &was) } // up to the hard limit is always allowed
}

// stampOf reads a process's stamp; 0 is none, or nobody's.
func stampOf(pid int) stamp {
	var has unix.Rlimit
	if unix.Prlimit(pid, carrier, nil, &has) != nil || has.Cur >= has.Max || has.Max-has.Cur >= stamps {
		return 0
	}
	return stamp(has.Max - has.Cur)
}
