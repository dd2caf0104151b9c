// Package proc starts a program, ends it with everything it started, and
// proves that nothing of it lives.
//
// A started program leads a session and a process group of its own. It
// belongs to the run, and is ended with it, when it
//
//   - is in that session or process group, or
//   - descends from a process that is, as far as that could be seen, or
//   - carries the run's mark SIGNALBOX_RUN=<mark> in its environment, or
//   - is an orphan that was handed to this process and bears the run's stamp, a
//     limit that all its processes inherit, or has taken off every stamp, or
//   - keeps an output of the run open when all else of it has ended, descends
//     from this process and was started after the run.
//
// The first finds ordinary children, the second those that called setsid, the
// third those that also let their parents die (a double fork), the others those
// that cleared their environment besides. On Linux this process becomes the one
// to which orphans are handed (a child subreaper), so that none disappears from
// its tree. On macOS orphans are not handed to it, and neither the environment nor
// the files of others are read.
//
// On Windows each run is in a Job Object, which nothing leaves and which the system
// ends with this process. It alone says what lives. What another process started is
// known by its pid, its start time and whose child it is.
//
// Pdeathsig fires when the forking thread ends, not the process, and the Go
// runtime ends threads as it likes. So only a program that is Bound has it, and
// those are forked by one thread that is kept for that.
package proc
