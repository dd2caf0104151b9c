// Package runner knows how each kind of agent executes a task: its command
// line, how to read its output, and when it has succeeded.
//
// A runner does not manage time, processes or files: it makes a Plan, which
// the daemon carries out. A coding CLI succeeds by its own terminal event,
// never by an exit status of 0 alone.
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

// Options configure a runner. The zero value runs the CLI found on PATH in
// the safest mode that works without a user.
type Options struct {
	Binary string // executable; empty: the kind's name on PATH

	// Permission is what the CLI may do without asking:
	//   claude    value of --permission-mode, default acceptEdits
	//   codex     value of --sandbox, default workspace-write
	//   opencode  ask (what its configuration would ask about is refused, the
	//             default) or allow (approved)
	Permission string

	Tiers        map[string]string // tier → model; added to the kind's own
	MaxTurns     int               // claude: --max-turns; 0: no limit
	AllowedTools []string          // claude: --allowedTools, used without asking
	ExtraArgs    []string          // put before the runner's own arguments
	Command      []string          // command: the argument template
	LLM          LLM               // llm: the model, and what it may do

	Prices Prices // of models, for CLIs that do not report costs

	// LimitWait is how long a CLI may wait by itself at a limit of its provider; if it
	// would wait longer, its run is ended. 0: DefaultLimitWait.
	LimitWait time.Duration
}

// Task is the part of a task that a runner needs.
type Task struct {
	Prompt     string
	Model      string // resolved from tier and defaults; empty: the CLI's own
	SessionID  string // our name of the conversation; empty: none
	CLISession string // the CLI's ID of that conversation; if Resume is not set, the ID for creating it
	Resume     bool
	Thinking   *bool
	Home       string // HOME of the CLI
	Dir        string // working folder

	AllowedTools []string // the only tools it may use; CheckExtras has checked this and SystemPrompt
	SystemPrompt string   // added to the CLI's own

	Gateway *Gateway // the director's tools, for a CLI that supports MCP; nil: none

	Budget signalbox.Budget     // budget of the run
	Hear   func(ProviderReport) // receives what a run within this process learns from its provider; may be nil

	// Env is the environment of a program of the run; Brought is the part that
	// the task itself set.
	Env     []string
	Brought map[string]string
}

// Plan is how to execute a task: a program, or, if Func is set, a function in
// this process, which must return soon after its context ends.
type Plan struct {
	Argv   []string
	Env    []string // "K=V" on top of the environment that the daemon builds
	Stdin  string
	Raw    bool     // standard output is plain output, not events
	Notes  []string // messages for people, for the log
	Stream Stream
	Func   func(ctx context.Context, out io.Writer) Outcome
}

// Stream parses the standard output of one run. Its methods must not be
// called concurrently.
type Stream interface {
	// Line takes one line and returns text for people, or "".
	Line(line []byte) string
	// StderrLine takes one line of standard error and returns text for people, or
	// "". pulse only shows that the CLI is active; it is not stored.
	StderrLine(line []byte) (text string, pulse bool)
	// Trouble describes the last problem that the CLI reported and that persists, such as
	// a 529 from its model; "" for none. hopeless is true if a retry cannot help, or not
	// soon, or if the budget is used up: then the run is ended with Heard().ErrType.
	Trouble() (trouble string, hopeless bool)
	// Heard is what the stream has learnt from the provider so far.
	Heard() ProviderReport
	// Session is the CLI's ID of the conversation, once the CLI has named it.
	Session() string
	// Done reports whether the terminal event has been seen.
	Done() bool
	// Outcome evaluates the run after the program has ended.
	Outcome(Exit) Outcome
}

// Exit is how the program of a Plan ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Text   string // for people
	Stdout string // its beginning, for Raw plans
	Stderr string // its end
}

// Outcome is how an execution ended by itself. An empty ErrType means
// success.
type Outcome struct {
	Output     string
	ErrType    string // see api.AgentError
	ErrMessage string // never empty with an ErrType
	ExitCode   *int
	Model      string // as the CLI reported it; "": the requested one
	ToolCount  int64  // number of tool calls, including failed ones

	// Refused are the tools that the permission mode refused, one entry per call.
	Refused []string

	Limit *api.AgentLimit // for usage_limit, overloaded and login_refused
}

// Refusals describes what was refused, or is "".
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
	// Inside reports whether runs are functions of this process without a working
	// folder. They keep conversations in the agent's own data folder, which is
	// their Home.
	Inside() bool
	// Plan makes a plan. If the task cannot be started, the error says what to
	// do, for example if a CLI is not installed.
	Plan(Task) (Plan, error)
	// Model resolves the model of a task; an unknown tier is an error.
	Model(model, tier, fallback string) (string, error)
	// NewSession returns the CLI's ID for a new conversation that we call name,
	// or "" if the CLI chooses it.
	NewSession(name string) string
	// CheckExtras refuses allowed tools and a system prompt if the CLI has no
	// equivalent or if they are malformed.
	CheckExtras(allowedTools []string, systemPrompt string) error
	// CheckBudget refuses a budget that cannot be enforced with a model; "" is the CLI's
	// own.
	CheckBudget(b signalbox.Budget, model string) error
	// Terminal returns the CLI as a user starts it, and additional environment
	// variables; without argv the user's shell is meant.
	Terminal(home string) (argv, env []string, err error)
	// SessionsIn returns SessionExists for many conversations of one home.
	SessionsIn(home string) func(cliSession string) bool
	// SessionExists reports whether the CLI itself knows the conversation.
	SessionExists(home, cliSession string) bool
	// Forget removes a conversation that is stored only by us.
	Forget(home, cliSession string) error
	// StateDir is the folder below home with the CLI's state, which two runs must
	// not share at the same time; "" for none.
	StateDir(home string) string
	// OwnServers are the MCP servers that the CLI itself starts in a folder. With
	// an error, the list has those that are known.
	OwnServers(home, dir string, environ []string) ([]OwnServer, error)
	// Account is the account of runs with this home and environment; brought is the
	// part of the environment that the task set.
	Account(home string, environ []string, brought map[string]string) Account
	// LimitsQuery returns a query for the limits of the account of runs with this home
	// and environment; nil if the CLI has none.
	LimitsQuery(home string, environ []string) *LimitsQuery
	// LoginFiles are the files below home with the CLI's login; a run with a home
	// of its own gets links to them.
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

// commonRunner has what the runners share, and defaults for most of them.
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

// SessionsIn accepts every conversation: it is for kinds whose program has
// none of its own and decides itself what a name means.
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

// binary returns the path of the CLI's executable.
func (b commonRunner) binary() (string, error) {
	name := cmp.Or(b.opt.Binary, b.kind)
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the command line %q is not installed or not on PATH: %w", name, err)
	}
	return path, nil
}

// failed makes the outcome of a failure; it always has a message, even if the
// CLI gave none.
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

// escapes matches terminal control sequences (ECMA-48): sequences with
// parameters, with a terminated string, and short ones. controls matches the
// remaining control characters; line ends and tabs are kept.
var (
	escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
		"|(?:\x1b[P\\]X^_]|[\u0090\u0098\u009d-\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)" +
		"|\x1b[ -/]*[0-~]")
	controls = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f-\u009f]")
)

// Plain returns a text without control characters and terminal sequences.
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
