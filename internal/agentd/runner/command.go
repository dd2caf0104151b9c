package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// maxArg is the longest single argument that Linux passes to a program, in
// bytes.
const maxArg = 128<<10 - 1

// commandRunner runs any program from an argument template. {prompt}, {model}
// and {session_id} fill whole arguments or parts of one; nothing is split,
// and no shell sees them. A template without {prompt} gets the prompt on
// standard input.
type commandRunner struct{ commonRunner }

func newCommand(o Options) (Runner, error) {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return nil, errors.New("a command agent needs a command to run")
	}
	if strings.Contains(o.Command[0], "{") {
		return nil, fmt.Errorf("the program %q of a command agent may not be a placeholder", o.Command[0])
	}
	return commandRunner{commonRunner{kind: "command", opt: o}}, nil
}

func (c commandRunner) Plan(t Task) (Plan, error) {
	fill := strings.NewReplacer("{prompt}", t.Prompt, "{model}", t.Model, "{session_id}", t.SessionID)
	p := Plan{Raw: true, Stream: &commandStream{}}
	if t.Budget != (signalbox.Budget{}) {
		p.Notes = append(p.Notes, "its budget is not kept, since a program does not say what it spends")
	}
	usesPrompt := false
	for i, a := range c.opt.Command {
		if i == 0 {
			p.Argv = append(p.Argv, a)
			continue
		}
		usesPrompt = usesPrompt || strings.Contains(a, "{prompt}")
		filled := fill.Replace(a)
		// An argument that consists of a placeholder must not become an option of the
		// program through untrusted text.
		if strings.HasPrefix(a, "{") && strings.HasPrefix(filled, "-") && !slices.Contains(c.opt.Command[:i], "--") {
			return Plan{}, fmt.Errorf("argument %d would begin with '-' and be taken for an option; put \"--\" before it in the command, or {prompt} behind a prefix", i)
		}
		if len(filled) > maxArg {
			return Plan{}, fmt.Errorf("argument %d has %d bytes, more than the %d that a program can be given; leave {prompt} out of the command to have the prompt on standard input", i, len(filled), maxArg)
		}
		p.Argv = append(p.Argv, filled)
	}
	if !usesPrompt {
		p.Stdin = t.Prompt
	}
	return p, nil
}

// CheckBudget accepts any budget: a program does not report usage, and usually calls no
// model. A director with a daily budget sets a budget for every run.
func (commandRunner) CheckBudget(signalbox.Budget, string) error { return nil }

type commandStream struct{ trouble }

func (*commandStream) Line([]byte) string { return "" }
func (*commandStream) Session() string    { return "" }
func (*commandStream) Done() bool         { return false }

func (*commandStream) Outcome(x Exit) Outcome {
	code := x.Code
	o := Outcome{Output: x.Stdout, ExitCode: &code}
	if x.Code == 0 {
		return o
	}
	return failed("exit_nonzero", withStderr("the command failed: "+x.Text, x.Stderr), x, o)
}
