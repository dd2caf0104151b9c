package proc

import "golang.org/x/sys/unix"

// KeepPrivate keeps other processes of the same user from tracing this one and from
// reading its memory, the environment that it was started with and its open files.
// It then writes no core dump either. Programs that it starts are not kept so.
// Root, and who has CAP_SYS_PTRACE, is not held up. macOS has nothing of the kind.
func KeepPrivate() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // which no kernel refuses
}
