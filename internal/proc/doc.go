// Package proc starts a program, ends it together with everything it started,
// and proves that none of these processes is alive.
//
// A started program leads its own session and process group. A process
// belongs to the run, and is ended with it, when it
//
//   - is in that session or process group, or
//   - descends from such a process, as far as that was observed, or
//   - has the run's mark SIGNALBOX_RUN=<mark> in its environment, or
//   - is an orphan that this process adopted and that has the run's stamp, a
//     limit that all its processes inherit, or no run's stamp any more, or
//   - keeps an output of the run open after all other processes of the run have
//     ended, descends from this process and was started after the run.
//
// The first rule finds ordinary children, the second those that called setsid, the
// third those whose parents have also died (a double fork), and the others those
// that also cleared their environment. On Linux this process adopts orphans (as a
// child subreaper), so that none leaves its tree. On macOS it does not get
// orphans, and can read neither the environment nor the open files of other
// processes.
//
// On Windows each run is in a Job Object. No process can leave it, and the system
// ends it with this process. It alone knows the living processes. Processes started
// by another process are identified by PID, start time and parent.
//
// Pdeathsig fires when the forking thread ends, not the process, and the Go
// runtime ends threads at any time. So only programs that are Bound have it,
// and one thread that is kept for this purpose forks them.
package proc
