// Package checks runs commands that decide whether work is good.
package checks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// Limits of a check.
const (
	defaultTimeout = 10 * time.Minute
	tailBytes      = 8 << 10   // output kept in the result
	logBytes       = 256 << 10 // output kept in the log, besides its end
)

// Options say where checks run.
type Options struct {
	Dir   string
	Env   []string         // the whole environment, "K=V"
	Log   io.Writer        // gets their output without the middle if it is too long; nil: discarded
	Mark  string           // mark of their processes, see proc.Spec
	Begun func(proc.Ident) // called for each process; may be nil
	Grace time.Duration    // from SIGTERM to SIGKILL
}

// AliveError reports processes of a check that could not be killed.
type AliveError struct {
	error
	Alive func() []int // processes that are still alive
}

func (e *AliveError) Unwrap() error { return e.error }

// Run runs the checks one after another, even after one has failed, with proof that no
// process of theirs is alive afterwards.
//
// Errors: the cause of ctx, if it ended before the last check did; an *AliveError. With an
// error Run still returns the results of the checks that had ended.
func Run(ctx context.Context, o Options, list []api.TaskCheck) (api.AgentChecks, error) {
	all := api.AgentChecks{Rounds: 1}
	var err error
	for _, c := range list {
		var r api.CheckResult
		if r, err = o.run(ctx, c); err != nil {
			break
		}
		all.Results = append(all.Results, r)
	}
	if all.State = judge(all.Results); err != nil && all.State == api.CheckPassed {
		all.State, all.Message = api.CheckUnavailable, "the checks were stopped before the last of them had ended"
	}
	return all, err
}

// Fails reports whether a state makes the work fail.
func Fails(state string) bool { return state == api.CheckFailed || state == api.CheckTimeout }

func judge(all []api.CheckResult) string {
	state := api.CheckPassed
	for _, r := range all {
		if Fails(r.State) {
			return api.CheckFailed
		}
		if r.State == api.CheckUnavailable {
			state = r.State
		}
	}
	if len(all) == 0 {
		state = api.CheckUnavailable
	}
	return state
}

// run runs one check.
func (o *Options) run(ctx context.Context, c api.TaskCheck) (api.CheckResult, error) {
	r := api.CheckResult{Name: c.Name}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	out := &output{log: cmp.Or[io.Writer](o.Log, io.Discard)}
	fmt.Fprintf(out.log, "[signalbox] check %s: %s\n", c.Name, c.Run)
	began := time.Now()
	child, err := o.start(c, out)
	if err != nil {
		r.State, r.Output = api.CheckUnavailable, runner.Plain("it could not be started: "+err.Error())
		fmt.Fprintf(out.log, "[signalbox] check %s: %s, %s\n", c.Name, r.State, r.Output)
		return r, nil
	}
	if o.Begun != nil {
		o.Begun(child.Ident())
	}
	timeout := cmp.Or(time.Duration(c.TimeoutSeconds)*time.Second, defaultTimeout)
	over := time.NewTimer(timeout)
	defer over.Stop()
	stopped := false
	select {
	case <-child.Exited():
	case <-over.C:
		r.State = api.CheckTimeout
	case <-ctx.Done():
		stopped = true
	}
	exit, err := child.End()
	r.Seconds = time.Since(began).Seconds()
	out.end()
	switch {
	case err != nil:
		return r, &AliveError{err, child.Alive}
	case stopped:
		return r, context.Cause(ctx)
	}
	how := exit.String()
	if r.State == api.CheckTimeout {
		how = fmt.Sprintf("stopped after %s", timeout)
	} else {
		r.State = stateOf(exit)
		if exit.Signal == "" {
			r.ExitCode = &exit.Code
		}
	}
	r.Output = out.text()
	fmt.Fprintf(out.log, "[signalbox] check %s: %s, %s, %.1f s\n", c.Name, r.State, how, r.Seconds)
	return r, nil
}

func (o *Options) start(c api.TaskCheck, out *output) (*proc.Process, error) {
	if _, err := os.Stat(o.Dir); err != nil { // otherwise the error would name the shell as missing
		return nil, err
	}
	return proc.Start(proc.Spec{
		Argv: []string{"sh", "-c", c.Run}, Dir: o.Dir, Env: o.Env, Stdout: out, Stderr: out, Mark: o.Mark, Grace: o.Grace,
	})
}

func stateOf(e proc.Exit) string {
	switch e.Code {
	case 0:
		return api.CheckPassed
	case 126, 127: // from the shell: the command cannot be run or does not exist
		return api.CheckUnavailable
	}
	return api.CheckFailed
}

// output receives what a check prints, from both streams.
type output struct {
	mu    sync.Mutex
	log   io.Writer
	total int64
	tail  []byte // the end: tailBytes, or up to twice that
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := logBytes - o.total; room > 0 {
		_, _ = o.log.Write(b[:min(int64(len(b)), room)]) // a failing log does not end a check
	}
	o.total += int64(len(b))
	if o.tail = append(o.tail, b[max(0, len(b)-tailBytes):]...); len(o.tail) > 2*tailBytes {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-tailBytes:]...)
	}
	return len(b), nil
}

// end logs the end of an output that was too long for the log.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = o.tail[max(0, len(o.tail)-tailBytes):]
	if missing := o.total - logBytes; missing > 0 {
		end := o.tail[max(0, int64(len(o.tail))-missing):]
		if cut := missing - int64(len(end)); cut > 0 {
			fmt.Fprintf(o.log, "\n[signalbox] %d bytes left out here\n", cut)
		}
		_, _ = o.log.Write(end)
	}
	if o.total > 0 && !bytes.HasSuffix(o.tail, []byte("\n")) {
		_, _ = io.WriteString(o.log, "\n")
	}
}

// text is the end of the output, at most tailBytes bytes.
func (o *output) text() string {
	s := runner.Plain(strings.ToValidUTF8(string(o.tail), "\uFFFD"))
	return strings.ToValidUTF8(s[max(0, len(s)-tailBytes):], "")
}
