package command

import (
	"errors"
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// takeBox takes a place for the run.
func (u *run) takeBox() error {
	t := u.t
	if t.host == nil {
		if t.sandbox.Required {
			return errors.New("the sandbox that this tool requires cannot be had: this process bounds no programs")
		}
		return nil
	}
	box, err := t.host.Take(t.limits, t.sandbox)
	if err != nil {
		return err
	}
	u.box = box
	return nil
}

// freeBox gives the place back. In one that cannot be emptied something of the
// run lives: then the run is not over for whoever counts that.
func (u *run) freeBox(o *Outcome) {
	if u.box == nil {
		return
	}
	knows := false
	if o.Still != nil {
		_, knows = u.box.Alive()
	}
	err := u.box.Free()
	if err == nil {
		if knows { // what hung a moment ago is dead: from now on the box is another run's
			o.Alive, o.Still = nil, nil
		}
		return
	}
	u.t.log.Error("the place of a command's run is not used again", "tool", u.t.conf.Name, "mark", u.r.Mark, "error", err)
	if alive, _ := u.box.Alive(); len(alive) > 0 && o.Still == nil {
		o.Alive, o.Still = alive, u.aliveInBox
	}
}

func (u *run) aliveInBox() []int {
	alive, _ := u.box.Alive()
	return alive
}

// unkillable says that something of the run lives on.
func (u *run) unkillable(o *Outcome, why ending, err error) {
	var alive *proc.UnkillableError
	if !errors.As(err, &alive) {
		return
	}
	o.Alive, o.Still = alive.PIDs, u.child.Alive
	if why == byItself {
		o.Reason, o.Message = signalbox.ReasonAgentError, "the command's run could not be ended"
	}
	o.Message += fmt.Sprintf("\nProcesses %v of it live on after SIGKILL: they hang in the system.", o.Alive)
	u.t.log.Error("processes of a command's run live on after SIGKILL", "tool", u.t.conf.Name, "mark", u.r.Mark, "pids", o.Alive)
}
