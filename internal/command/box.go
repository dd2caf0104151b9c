package command

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// takeBox takes a place for the run.
func (u *run) takeBox(path, dir string) error {
	t := u.t
	if t.host == nil {
		if t.sandbox.Required {
			return errors.New("the sandbox that this tool requires cannot be had: this process bounds no programs")
		}
		return nil
	}
	sandbox := t.sandbox
	if sandbox.On {
		sandbox.Read = append(slices.Clone(sandbox.Read), path)
		if dir != "" {
			sandbox.Read = append(sandbox.Read, dir)
		}
	}
	box, err := t.host.Take(t.limits, sandbox)
	if err != nil {
		return err
	}
	u.box = box
	return nil
}

// freeBox gives the place back when nothing lives in it.
func (u *run) freeBox() {
	if u.box == nil {
		return
	}
	if err := u.box.Free(); err != nil {
		u.t.log.Error("the place of a command's run is not used again", "tool", u.t.conf.Name, "mark", u.r.Mark, "error", err)
	}
}

// lookAgain is the time between two looks at what cannot be killed.
const lookAgain = time.Second

// unkillable says that the run is not over for whoever counts what lives. Its
// box is given back when it is.
func (u *run) unkillable(o *Outcome, err error) {
	var alive *proc.UnkillableError
	if errors.As(err, &alive) {
		o.Alive = alive.PIDs
	}
	o.Still = u.child.Alive
	o.Message += fmt.Sprintf("\nProcesses %v of it live on after SIGKILL: they hang in the system.", o.Alive)
	u.t.log.Error("processes of a command's run live on after SIGKILL", "tool", u.t.conf.Name, "mark", u.r.Mark, "pids", o.Alive)
	if u.box == nil {
		return
	}
	go func() {
		for len(u.child.Alive()) > 0 {
			time.Sleep(lookAgain)
		}
		u.freeBox()
	}()
}
