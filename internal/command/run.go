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

// run is a running run.
type run struct {
	t     *Tool
	r     Run
	begin time.Time
	limit time.Duration // 0: none
	hide  []mask.Pattern
	out   *capture
	box   *confine.Box // nil: none
	child *proc.Process
	fed   <-chan struct{} // closed when the input has been written
	stdin *os.File        // our end of its input, if the input is written gradually
}

// Run runs the tool and returns when no process of the run is alive, or some
// cannot be killed (Outcome.Alive). Cancelling ctx cancels the run; an exceeded
// deadline of ctx counts as a time limit.
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

// line is the program's input (seed: tool, input, metadata, taskId).
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

// busyTries and busyPause bound the wait for a program file that is being
// written: a concurrent fork keeps the file open for a moment.
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

// surelyFits is how many bytes an empty pipe takes at once, whatever its
// size.
const surelyFits = 4096

// input returns the program's standard input, which has the line and then
// ends. A program may close its input early or never read it: a long line is
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

// ending says why a run ends.
type ending int

const (
	byItself  ending = iota
	outOfTime        // its own time limit, or the deadline of its context
	cancelled
	flooded // it printed too much
)

// await returns when the program has ended, or must be ended.
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

// settle gives child processes that hold the output open time to write the
// rest.
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

// end ends the remaining processes of the run, and returns the outcome.
func (u *run) end(why ending) Outcome {
	grace := CancelGrace
	if why == outOfTime || why == flooded {
		grace = 0
	}
	exit, err := u.child.EndWithin(grace)
	if u.fed != nil {
		u.stdin.Close() // if the program never read it
		<-u.fed
	}
	u.out.end()
	if u.out.flooded {
		why = flooded // whatever its exit code is
	}
	o := u.outcome(why, exit)
	if u.box != nil && o.Reason != signalbox.ReasonCompleted && o.Struck == "" && why == byItself {
		u.strike(&o, u.box.Struck(), exit)
	}
	if err != nil {
		u.unkillable(&o, why, err)
	} else if exit.Held {
		u.t.log.Warn("a process that is not known to belong to a command's run keeps an output of it open", "tool", u.t.conf.Name, "mark", u.r.Mark)
	}
	u.freeBox(&o)
	return o
}
