package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

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

// byWeight are the limits that a box reports; of several, the last in this
// order counts.
var byWeight = []string{StruckProcesses, StruckFileSize, StruckCPUTime, StruckMemory}

// failed is the outcome of a run that could not be started.
func (u *run) failed(err error) Outcome {
	return Outcome{Reason: signalbox.ReasonAgentError, Message: mask.Text(u.hide, err.Error())}
}

// stopped is the outcome of a run whose context ended before it was started.
func (u *run) stopped(ctx context.Context) Outcome {
	var o Outcome
	u.word(&o, byContext(ctx), proc.Exit{})
	return o
}

// outcome returns the outcome of an ended run.
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

// word sets the reason and the message of an outcome (seed: success is exit code 0
// within the time limit, and nothing else).
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

// strike determines the limit because of which a run failed: one that its box
// reports, or one that the system signalled to the program. A shell reports a
// signal to its children as an exit code.
func (u *run) strike(o *Outcome, seen []string, exit proc.Exit) {
	l := u.t.conf.Limits
	by := func(s syscall.Signal) bool { return exit.Signal == s.String() || exit.Code == 128+int(s) }
	switch {
	case len(seen) > 0:
		// A program may survive a failed fork, so processes has the lowest rank.
		rank := func(limit string) int { return slices.Index(byWeight, limit) }
		o.Struck = slices.MaxFunc(seen, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	case l.FileSize > 0 && by(fileSizeSignal):
		o.Struck = StruckFileSize
	case l.CPUTime > 0 && by(cpuTimeSignal):
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

// timeLimit is the limit in messages: the run's own, or else what its context
// left.
func (u *run) timeLimit() time.Duration {
	if u.limit > 0 {
		return u.limit
	}
	return time.Since(u.begin).Round(time.Millisecond)
}

// limitWords says which limit was reached and where it is configured.
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

// size formats a number of bytes for prose: 64 MiB.
func size(n int64) string {
	s := toolconf.Size(n)
	i := strings.IndexFunc(s, func(r rune) bool { return r > '9' })
	return s[:i] + " " + s[i:]
}

// signalName is a signal's name with its description: SIGSEGV (segmentation
// fault).
func signalName(said string) string {
	for s := syscall.Signal(1); s < 65; s++ {
		if s.String() == said {
			if name := nameOf(s); name != "" {
				return name + " (" + said + ")"
			}
		}
	}
	return said
}

// capture receives both outputs of a run.
type capture struct {
	out, err stream

	mu      sync.Mutex // the outputs have two goroutines; calls of the log must not overlap
	log     func(stream string, text []byte)
	left    int64         // bytes that may still be printed
	flooded bool          // more was printed
	flood   chan struct{} // closed with flooded
}

// stream is one of the outputs.
type stream struct {
	to    *capture
	name  string
	mask  *mask.Masker
	clean cleaner
	kept  []byte
	full  bool // more was printed than is kept
}

func newCapture(hide []mask.Pattern, limit int64, log func(string, []byte)) *capture {
	c := &capture{log: log, left: limit, flood: make(chan struct{})}
	c.out = stream{to: c, name: "stdout", mask: mask.New(hide)}
	c.err = stream{to: c, name: "stderr", mask: mask.New(hide)}
	return c
}

// Write never fails: the limit should end the program, not a closed pipe.
func (s *stream) Write(b []byte) (int, error) {
	c, n := s.to, len(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flooded {
		return n, nil
	}
	if int64(n) > c.left {
		b, c.flooded = b[:c.left], true
		close(c.flood)
	}
	c.left -= int64(len(b))
	s.take(s.mask.Feed(b, false), false)
	return n, nil
}

// end flushes what was held back. There are no more writes.
func (c *capture) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*stream{&c.out, &c.err} {
		s.take(s.mask.End(), true)
	}
}

func (s *stream) take(masked []byte, last bool) {
	text := s.clean.feed(masked, last)
	if len(text) == 0 {
		return
	}
	s.keep(text)
	if s.to.log != nil {
		s.to.log(s.name, text)
	}
}

// keep stores the beginning, up to a character boundary.
func (s *stream) keep(text []byte) {
	room := KeptOutput - len(s.kept)
	if s.full {
		return
	}
	if s.full = len(text) > room; s.full {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
	}
	s.kept = append(s.kept, text...)
}

// cleaner converts bytes that arrive in pieces to valid UTF-8, with U+FFFD
// for invalid ones. A character that arrives in two pieces stays whole.
type cleaner struct{ part []byte }

// feed returns the text that is complete; last says that no more bytes
// follow. The result is valid until the next call.
func (c *cleaner) feed(b []byte, last bool) []byte {
	if len(c.part) > 0 {
		b = append(c.part, b...)
		c.part = nil
	}
	if !last {
		if n := begun(b); n > 0 {
			c.part = bytes.Clone(b[len(b)-n:])
			b = b[:len(b)-n]
		}
	}
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// begun is the number of bytes at the end that begin an incomplete character.
func begun(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
