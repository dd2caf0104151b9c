package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/mask"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// The limits that can end a run (Outcome.Struck).
const (
	StruckTime      = "time"
	StruckMemory    = "memory"
	StruckProcesses = "processes"
	StruckCPUTime   = "cpu_time"
	StruckFileSize  = "file_size"
	StruckOutput    = "output"
)

// byWeight are those that a box tells of; of two the latter ended the run.
var byWeight = []string{StruckProcesses, StruckFileSize, StruckCPUTime, StruckMemory}

// failed is the outcome of a run that was not started.
func (u *run) failed(err error) Outcome {
	return Outcome{Reason: signalbox.ReasonAgentError, Message: mask.Text(u.hide, err.Error())}
}

// stopped is the outcome of a run whose context ended before it was started.
func (u *run) stopped(ctx context.Context) Outcome {
	var o Outcome
	u.word(&o, byContext(ctx), proc.Exit{})
	return o
}

// outcome says what a run came to that has ended.
func (u *run) outcome(why ending, exit proc.Exit) Outcome {
	o := Outcome{
		Stdout: string(u.out.out.kept), Stderr: string(u.out.err.kept),
		Truncated: u.out.out.full || u.out.err.full || u.out.flooded,
	}
	if exit.Signal == "" && exit.Code >= 0 {
		o.ExitCode = &exit.Code
	}
	u.word(&o, why, exit)
	return o
}

// word gives an outcome its reason and its message (seed: success is exit code
// 0 within its time, and nothing else).
func (u *run) word(o *Outcome, why ending, exit proc.Exit) {
	switch why {
	case outOfTime:
		o.Reason, o.Struck = signalbox.ReasonRunTimeout, StruckTime
		o.Message = fmt.Sprintf("Task timed out after %dms", u.timeLimit().Milliseconds())
	case cancelled:
		o.Reason, o.Message = signalbox.ReasonCancelled, "the run was cancelled"
	case flooded:
		o.Reason, o.Struck = signalbox.ReasonAgentError, StruckOutput
		o.Message = u.limitWords(StruckOutput)
	case byItself:
		u.wordExit(o, exit)
	}
}

func (u *run) wordExit(o *Outcome, exit proc.Exit) {
	said := strings.TrimSpace(o.Stderr)
	switch {
	case exit.Signal != "":
		o.Reason, o.Message = signalbox.ReasonAgentError, "command ended by signal "+signalName(exit.Signal)
		if said != "" {
			o.Message = said + "\n" + o.Message
		}
	case exit.Code == 0:
		o.Reason = signalbox.ReasonCompleted
	case said != "":
		o.Reason, o.Message = signalbox.ReasonExitNonzero, said
	default:
		o.Reason, o.Message = signalbox.ReasonExitNonzero, fmt.Sprintf("command exited with code %d", exit.Code)
	}
	if o.Reason != signalbox.ReasonCompleted {
		u.strike(o, nil, exit)
	}
}

// strike names the limit for which a run failed: one that its box saw, or one
// that the system told the program of by a signal. A shell says that of its
// children by an exit code.
func (u *run) strike(o *Outcome, seen []string, exit proc.Exit) {
	l := u.t.conf.Limits
	by := func(s syscall.Signal) bool { return exit.Signal == s.String() || exit.Code == 128+int(s) }
	switch {
	case len(seen) > 0:
		// A program can live with a fork that failed, so that comes last.
		rank := func(limit string) int { return slices.Index(byWeight, limit) }
		o.Struck = slices.MaxFunc(seen, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	case l.FileSize > 0 && by(syscall.SIGXFSZ):
		o.Struck = StruckFileSize
	case l.CPUTime > 0 && by(syscall.SIGXCPU):
		o.Struck = StruckCPUTime
	default:
		return
	}
	o.Reason = signalbox.ReasonAgentError
	said := strings.TrimSpace(o.Stderr)
	o.Message = u.limitWords(o.Struck)
	if said != "" {
		o.Message += "\n" + said
	}
}

// timeLimit is the limit that a message names: the run's own, else what its
// context left it.
func (u *run) timeLimit() time.Duration {
	if u.limit > 0 {
		return u.limit
	}
	return time.Since(u.begin).Round(time.Millisecond)
}

// limitWords says which limit was reached, and where it is set.
func (u *run) limitWords(struck string) string {
	l := u.t.conf.Limits
	switch struck {
	case StruckMemory:
		return "ended: it used more than its memory limit of " + size(l.Memory) + " (limits.memory)"
	case StruckProcesses:
		return fmt.Sprintf("ended: it wanted more than its limit of %d processes (limits.processes)", l.Processes)
	case StruckCPUTime:
		return fmt.Sprintf("ended: it used more than its CPU time limit of %v (limits.cpuTime)", l.CPUTime)
	case StruckFileSize:
		return "ended: it wrote a file larger than its limit of " + size(l.FileSize) + " (limits.fileSize)"
	case StruckOutput:
		return "ended: it printed more than its output limit of " + size(outputLimit(l)) + " (limits.output)"
	}
	return "ended: it reached its limit of " + struck
}

// size writes a number of bytes as a sentence has it: 64 MiB.
func size(n int64) string {
	s := toolconf.Size(n)
	i := strings.IndexFunc(s, func(r rune) bool { return r > '9' })
	return s[:i] + " " + s[i:]
}

// signalName is a signal's name with what it says: SIGSEGV (segmentation fault).
func signalName(said string) string {
	for s := syscall.Signal(1); s < 65; s++ {
		if s.String() == said {
			if name := unix.SignalName(s); name != "" {
				return name + " (" + said + ")"
			}
		}
	}
	return said
}
