package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/mask"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// run is a run under way.
type run struct {
	t     *Tool
	r     Run
	begin time.Time
	limit time.Duration // 0: none
	hide  []mask.Pattern
	out   *capture
	box   *confine.Box // nil: none
	child *proc.Process
	fed   <-chan struct{} // closed when nobody writes to its input any more
	stdin *os.File        // our end of its input, where that is written bit by bit
}

// Run runs it and returns when nothing of the run lives, or cannot be killed
// (Outcome.Alive). Ending ctx cancels the run; a deadline of ctx that passes is
// a time limit.
func (t *Tool) Run(ctx context.Context, r Run) Outcome {
	u := &run{t: t, r: r, begin: time.Now(), limit: t.conf.Timeout}
	if r.Timeout > 0 {
		u.limit = r.Timeout
	}
	o := u.do(ctx)
	o.Took = time.Since(u.begin)
	return o
}

func (u *run) do(ctx context.Context) Outcome {
	secrets, err := secretsOf(u.r.Input, slices.Concat(u.t.conf.Secrets, u.r.Secrets))
	if err != nil {
		return u.failed(err)
	}
	u.hide = mask.Patterns(u.t.hide, secrets...)
	if ctx.Err() != nil {
		return u.stopped(ctx)
	}
	line, err := u.line()
	if err != nil {
		return u.failed(err)
	}
	dir, err := u.t.folder(u.r.Input)
	if err != nil {
		return u.failed(err)
	}
	path, err := program(u.t.conf.Command)
	if err != nil {
		return u.failed(err)
	}
	if err := u.takeBox(); err != nil {
		return u.failed(err)
	}
	u.out = newCapture(u.hide, outputLimit(u.t.conf.Limits), u.r.Log)
	if err := u.start(path, dir, line); err != nil {
		o := u.failed(notStarted(err, path, dir))
		u.freeBox(&o)
		return o
	}
	if u.r.Started != nil {
		u.r.Started(u.child.Ident().PID)
	}
	return u.end(u.await(ctx))
}

func outputLimit(l toolconf.CommandLimits) int64 {
	if l.Output > 0 {
		return l.Output
	}
	return toolconf.DefaultOutput
}

// line is what the program is given on its input (seed: tool, input, metadata,
// taskId).
func (u *run) line() ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(u.r.Input) + len(u.r.Metadata) + len(u.t.name) + 128)
	b.WriteString(`{"tool":`)
	b.Write(u.t.name)
	for _, p := range []struct {
		key string
		raw json.RawMessage
	}{{`,"input":`, u.r.Input}, {`,"metadata":`, u.r.Metadata}} {
		b.WriteString(p.key)
		if len(p.raw) == 0 || string(p.raw) == "null" {
			b.WriteString("{}")
		} else if err := json.Compact(&b, p.raw); err != nil {
			return nil, errors.New("the arguments or the metadata are not JSON")
		}
	}
	if u.r.TaskID != "" {
		b.WriteString(`,"taskId":`)
		b.Write(plainJSON(u.r.TaskID))
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// busyTries and busyPause bound how long a program that is being written is
// waited for: whoever forks meanwhile keeps its file open for a moment.
const (
	busyTries = 20
	busyPause = 5 * time.Millisecond
)

func (u *run) start(path, dir string, line []byte) error {
	for try := 1; ; try++ {
		err := u.startOnce(path, dir, line)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return err
		}
		time.Sleep(busyPause)
	}
}

func (u *run) startOnce(path, dir string, line []byte) error {
	theirs, err := u.input(line)
	if err != nil {
		return err
	}
	spec := proc.Spec{
		Argv: append([]string{path}, u.t.conf.Args...), Dir: dir, Env: u.t.env,
		Input: theirs, Stdout: &u.out.out, Stderr: &u.out.err,
		Mark: u.r.Mark, Grace: CancelGrace,
	}
	if u.box != nil {
		spec.Box = u.box
	}
	if u.child, err = proc.Start(spec); err != nil {
		if u.stdin != nil {
			u.stdin.Close()
			u.stdin = nil
		}
		return err
	}
	if u.stdin != nil {
		u.feed(line)
	}
	return nil
}

// surelyFits is what an empty pipe takes at once, whatever its size.
const surelyFits = 4096

// input is where the program reads its line and then the end of it. One that
// closes its input early or never reads it is none the worse: a long line is
// written by feed.
func (u *run) input(line []byte) (theirs *os.File, err error) {
	if len(line) <= surelyFits {
		return shortInput(line)
	}
	theirs, u.stdin, err = os.Pipe()
	return theirs, err
}

func (u *run) feed(line []byte) {
	done := make(chan struct{})
	u.fed = done
	go func() {
		defer close(done)
		_, _ = u.stdin.Write(line)
		u.stdin.Close()
	}()
}

// ending says why a run is over.
type ending int

const (
	byItself  ending = iota
	outOfTime        // its own time, or the deadline of its context
	cancelled
	flooded // it printed too much
)

// await returns when the program has ended, or must.
func (u *run) await(ctx context.Context) ending {
	var limit <-chan time.Time
	if u.limit > 0 {
		limit = time.After(u.limit - time.Since(u.begin))
	}
	select {
	case <-u.child.Exited():
		u.settle(ctx)
		return byItself
	case <-limit:
		return outOfTime
	case <-ctx.Done():
		return byContext(ctx)
	case <-u.out.flood:
		return flooded
	}
}

func byContext(ctx context.Context) ending {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return outOfTime
	}
	return cancelled
}

// settle lets others that the program started, and that hold its output, say
// the rest.
func (u *run) settle(ctx context.Context) {
	select {
	case <-u.child.Drained():
		return
	default:
	}
	select {
	case <-u.child.Drained():
	case <-time.After(SettleTime):
	case <-ctx.Done():
	case <-u.out.flood:
	}
}

// end ends what lives of the run, and says what it came to.
func (u *run) end(why ending) Outcome {
	grace := CancelGrace
	if why == outOfTime || why == flooded {
		grace = 0
	}
	exit, err := u.child.EndWithin(grace)
	if u.fed != nil {
		u.stdin.Close() // where nobody ever read it
		<-u.fed
	}
	u.out.end()
	if u.out.flooded {
		why = flooded // whatever it said of itself in the end
	}
	o := u.outcome(why, exit)
	if u.box != nil && o.Reason != signalbox.ReasonCompleted && o.Struck == "" && why == byItself {
		u.strike(&o, u.box.Struck(), exit)
	}
	if err != nil {
		u.unkillable(&o, why, err)
	} else if exit.Held {
		u.t.log.Warn("somebody who is not known to be of a command's run keeps an output of it open", "tool", u.t.conf.Name, "mark", u.r.Mark)
	}
	u.freeBox(&o)
	return o
}
