// Package runner knows how each kind of agent executes a task: the command
// line it is given, how its output is read, and when it has succeeded.
//
// A runner decides nothing about time, processes or files; it makes a Plan,
// and the daemon carries it out. For coding CLIs success is the CLI's own
// terminal event, never an exit status of 0 alone.
package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Options configure a runner. The zero value runs the CLI found on PATH with
// the safest mode that works without a person.
type Options struct {
	Binary string // executable; empty: looked up on PATH by the kind's name

	// Permission is what the CLI may do without asking:
	//   claude    value of --permission-mode, default acceptEdits
	//   codex     value of --sandbox, default workspace-write
	//   opencode  ask (what its configuration would ask about is refused, the
	//             default) or allow (approved)
	Permission string

	Tiers        map[string]string // tier → model; added to the kind's own
	MaxTurns     int               // claude: --max-turns; 0 is none
	AllowedTools []string          // claude: --allowedTools, used without asking
	ExtraArgs    []string          // put before what the runner itself adds
	Command      []string          // command: the argument template
	LLM          LLM               // llm: the model, and what it may do

	Prices Prices // of models, where the CLI does not say what they cost

	// LimitWait is how long a CLI may wait by itself at a limit of its provider; where
	// it would wait longer its run is ended. 0: DefaultLimitWait.
	LimitWait time.Duration
}

// Task is what a runner needs to know of a task.
type Task struct {
	Prompt     string
	Model      string // already resolved from tier and defaults; empty: the CLI's own
	SessionID  string // our name of the conversation; empty for none
	CLISession string // the CLI's id of that conversation; with Resume unset, the id to create it under
	Resume     bool
	Thinking   *bool
	Home       string // HOME of the CLI
	Dir        string // working folder

	AllowedTools []string // the only tools it may use; checked by CheckExtras, as is what follows
	SystemPrompt string   // added to the CLI's own

	Gateway *Gateway // tools of the director, for a CLI that speaks MCP; nil: none

	Budget signalbox.Budget // what the run may spend
	Hear   func(Heard)      // told what a run within this process hears of its provider; may be nil

	// Env is the environment that a program of the run gets, and Brought what of
	// it the task itself brought.
	Env     []string
	Brought map[string]string
}

// Plan is how to execute one task: a program, or for Func set a function of
// this process, which must return soon after its context ends.
type Plan struct {
	Argv   []string
	Env    []string // "K=V" on top of the environment that the daemon builds
	Stdin  string
	Raw    bool     // standard output is the output as it stands, not events
	Notes  []string // what a person should know of it, for the log
	Stream Stream
	Func   func(ctx context.Context, out io.Writer) Outcome
}

// Stream reads the standard output of one run. Its methods are called from
// one goroutine at a time.
type Stream interface {
	// Line takes one line and returns text for people, or "".
	Line(line []byte) string
	// StderrLine takes one line of standard error and returns text for people, or
	// "". A pulse says only that the CLI is at work; it is kept nowhere.
	StderrLine(line []byte) (text string, pulse bool)
	// Trouble is the last trouble that the CLI told of and has not got over, such
	// as that its model answers 529, in words; "" for none. Hopeless is set when
	// trying again cannot help, or not soon, or there is no money left to: the run is then
	// ended, for Heard().ErrType.
	Trouble() (trouble string, hopeless bool)
	// Heard is what it has heard of the provider so far.
	Heard() Heard
	// Session is the CLI's id of the conversation once it has named it.
	Session() string
	// Done reports whether the terminal event has been seen.
	Done() bool
	// Outcome decides, once the program has ended.
	Outcome(Exit) Outcome
}

// Exit is how the program of a Plan ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Text   string // in words
	Stdout string // its beginning, for Raw plans
	Stderr string // its end
}

// Outcome is how an execution ended by itself. An empty ErrType is success.
type Outcome struct {
	Output     string
	ErrType    string // see api.AgentError
	ErrMessage string // never empty with an ErrType
	ExitCode   *int
	Model      string // that ran, as it said; "": as it was asked for
	ToolCount  int64  // uses of tools, those that failed too

	// Refused are the tools that the permission mode refused, once for each use.
	Refused []string

	Limit *api.AgentLimit // with usage_limit, overloaded and login_refused
}

// Refusals says what was refused, or "".
func (o Outcome) Refusals() string {
	if len(o.Refused) == 0 {
		return ""
	}
	names := slices.Compact(slices.Sorted(slices.Values(o.Refused)))
	uses := "uses of tools were"
	if len(o.Refused) == 1 {
		uses = "use of a tool was"
	}
	return fmt.Sprintf("%d %s refused by the permission mode: %s", len(o.Refused), uses, strings.Join(names, ", "))
}

// Runner makes plans.
type Runner interface {
	// Kind is claude, codex, opencode, command, llm or demo.
	Kind() string
	// Inside reports that runs are functions of this process, which use no
	// working folder. What they keep of conversations lies in the agent's own
	// data folder, which is their Home.
	Inside() bool
	// Plan returns an error that a person can act on when the task cannot be
	// started, such as for a CLI that is not installed.
	Plan(Task) (Plan, error)
	// Model resolves the model of a task; an unknown tier is an error.
	Model(model, tier, fallback string) (string, error)
	// NewSession returns the CLI's id for a new conversation that we call
	// name, or "" when the CLI chooses it.
	NewSession(name string) string
	// CheckExtras refuses allowed tools and a system prompt where the CLI has
	// nothing that is the same, or where they are not well formed.
	CheckExtras(allowedTools []string, systemPrompt string) error
	// CheckBudget refuses a budget that could not be kept with a model; "" is the CLI's own.
	CheckBudget(b signalbox.Budget, model string) error
	// Terminal is the CLI as a person starts it, and what its environment gets
	// on top; without a program the person's shell is meant.
	Terminal(home string) (argv, env []string, err error)
	// SessionsIn returns SessionExists for many conversations of one home.
	SessionsIn(home string) func(cliSession string) bool
	// SessionExists reports whether the CLI itself knows the conversation.
	SessionExists(home, cliSession string) bool
	// Forget removes what is kept of a conversation that is ours alone.
	Forget(home, cliSession string) error
	// StateDir is the folder below home that the CLI keeps its state in, and
	// that two runs must not share at a time; "" for none.
	StateDir(home string) string
	// OwnServers are the MCP servers that the CLI starts by itself in a folder,
	// as far as that is known beside an error.
	OwnServers(home, dir string, environ []string) ([]OwnServer, error)
	// Account is what runs with that home and environment spend; brought is what of
	// it their task brought.
	Account(home string, environ []string, brought map[string]string) Account
	// LimitsQuery asks the CLI for the limits of what runs with that home and environment
	// spend; nil where it cannot be asked.
	LimitsQuery(home string, environ []string) *LimitsQuery
	// LoginFiles are the files below home that hold the CLI's login; a run
	// with a home of its own gets links to them.
	LoginFiles() []string
}

// New returns the runner of a kind.
func New(kind string, o Options) (Runner, error) {
	if err := o.Prices.check(); err != nil {
		return nil, err
	}
	switch kind {
	case "claude":
		return newClaude(o)
	case "codex":
		return newCodex(o)
	case "opencode":
		return newOpencode(o)
	case "command":
		return newCommand(o)
	case "llm":
		return newLLM(o)
	case "demo":
		return Demo{commonRunner{kind: "demo"}}, nil
	}
	return nil, fmt.Errorf("unknown kind %q: claude, codex, opencode, command, llm or demo", kind)
}

// commonRunner has what the runners share and defaults for what most do not need.
type commonRunner struct {
	kind  string
	opt   Options
	tiers map[string]string
}

func (b commonRunner) Kind() string                      { return b.kind }
func (b commonRunner) Inside() bool                      { return false }
func (b commonRunner) NewSession(string) string          { return "" }
func (b commonRunner) SessionExists(string, string) bool { return false }
func (b commonRunner) Forget(string, string) error       { return nil }
func (b commonRunner) StateDir(string) string            { return "" }
func (b commonRunner) LoginFiles() []string              { return nil }

func (b commonRunner) OwnServers(string, string, []string) ([]OwnServer, error) { return nil, nil }

// SessionsIn is for kinds whose program has no conversations of its own: what
// it is told by the name of one is its own business.
func (b commonRunner) SessionsIn(string) func(string) bool { return func(string) bool { return true } }

func (b commonRunner) Terminal(string) (argv, env []string, err error) { return nil, nil, nil }

func (b commonRunner) CheckExtras(allowedTools []string, systemPrompt string) error {
	switch {
	case len(allowedTools) > 0:
		return fmt.Errorf("allowed_tools cannot be used with a %s agent: it has no such option", b.kind)
	case systemPrompt != "":
		return fmt.Errorf("system_prompt cannot be used with a %s agent: it has no such option", b.kind)
	}
	return nil
}

func (b commonRunner) Model(model, tier, fallback string) (string, error) {
	if model != "" {
		return model, nil
	}
	if tier == "" {
		return fallback, nil
	}
	if m, ok := b.opt.Tiers[tier]; ok {
		return m, nil
	}
	if m, ok := b.tiers[tier]; ok {
		return m, nil
	}
	var known []string
	for t := range b.tiers {
		known = append(known, t)
	}
	for t := range b.opt.Tiers {
		if !slices.Contains(known, t) {
			known = append(known, t)
		}
	}
	slices.Sort(known)
	if len(known) == 0 {
		return "", fmt.Errorf("this agent has no tiers; name a model, or configure tiers")
	}
	return "", fmt.Errorf("unknown tier %q: this agent has %s", tier, strings.Join(known, ", "))
}

// binary finds the CLI's executable.
func (b commonRunner) binary() (string, error) {
	name := cmp.Or(b.opt.Binary, b.kind)
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the command line %q is not installed or not on PATH: %w", name, err)
	}
	return path, nil
}

// failed makes an outcome of a failure, with a message even where the CLI
// gave none.
func failed(typ, message string, x Exit, o Outcome) Outcome {
	o.ErrType = typ
	o.ErrMessage = strings.TrimSpace(message)
	if o.ErrMessage == "" {
		o.ErrMessage = withStderr("the command line reported an error without a text; "+x.Text, x.Stderr)
	}
	return o
}

// noResult is the outcome of a CLI that ended without its terminal event.
func noResult(kind string, x Exit, o Outcome) Outcome {
	msg := fmt.Sprintf("%s ended without a result (%s)", kind, x.Text)
	return failed("no_result", withStderr(msg, x.Stderr), x, o)
}

// escapes are the control sequences of terminals (ECMA-48): those with
// parameters, those with a string that ends, and the short ones. controls are
// what is left; a text has lines and tabs.
var (
	escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
		"|(?:\x1b[P\\]X^_]|[\u0090\u0098\u009d-\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)" +
		"|\x1b[ -/]*[0-~]")
	controls = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f]")
)

// Plain is a text without control characters and sequences of terminals.
func Plain(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return controls.ReplaceAllString(escapes.ReplaceAllString(s, ""), "")
}

func withStderr(msg, stderr string) string {
	if s := LastLines(Plain(stderr), 5); s != "" {
		return msg + ": " + s
	}
	return msg
}

// LastLines returns the last n lines that are not blank, at most 2,000 bytes.
func LastLines(s string, n int) string {
	var keep []string
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := len(lines) - 1; i >= 0 && len(keep) < n; i-- {
		if l := strings.TrimSpace(lines[i]); l != "" {
			keep = append(keep, l)
		}
	}
	slices.Reverse(keep)
	out := strings.Join(keep, "\n")
	if len(out) > 2000 {
		out = strings.ToValidUTF8(out[len(out)-2000:], "")
	}
	return out
}

// oneLine shortens s to its first line and at most n bytes.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(s)
	first, rest, cut := strings.Cut(s, "\n")
	if len(first) > n {
		return strings.ToValidUTF8(first[:n], "") + "…"
	}
	if cut && strings.TrimSpace(rest) != "" {
		return first + " …"
	}
	return first
}
