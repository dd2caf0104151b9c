package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/mask"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// MaxInput bounds the input of a run, 4 MiB.
const MaxInput = 4 << 20

// Options are what all tools of a process share.
type Options struct {
	// Host bounds the runs. Without one limits are not kept, but for time and
	// output, and a tool that requires a sandbox does not run.
	Host      *confine.Host
	AgentName string // metadata.agent of all results (AGENT_NAME); "": the tool's name
	Log       *slog.Logger
}

// Tool is a command tool, ready to run. Its methods are safe for use from
// several goroutines.
type Tool struct {
	conf     toolconf.CommandTool
	host     *confine.Host
	log      *slog.Logger
	schema   *schema
	env      []string
	hide     []mask.Pattern
	limits   confine.Limits
	sandbox  confine.Sandbox
	metadata json.RawMessage
	name     []byte // as JSON
}

// New compiles a tool: its schema, its places. An error names what is wrong
// with it. Whether its program is there is looked at when a run begins.
func New(t toolconf.CommandTool, o Options) (*Tool, error) {
	var errs []error
	wrong := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: command tool %s: %s: %w", t.Where, t.Name, key, err))
		}
	}
	s, err := compileSchema(t.InputSchema)
	wrong("inputSchema", err)
	wrong("command", usable(t.Command))
	wrong("cwd", place(t.Cwd, t.CwdRoot))
	for name, value := range t.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			wrong("env", fmt.Errorf("the variable %s cannot be given to a program", shown(name)))
		}
	}
	if err == nil {
		t.Secrets, err = withMarked(t.Secrets, s.root)
		wrong("inputSchema", err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, note := range s.notes {
		o.Log.Warn("command tool: "+note, "tool", t.Name, "where", t.Where)
	}
	return &Tool{
		conf: t, host: o.Host, log: o.Log, schema: s,
		env: environment(t.Env), hide: valuePatterns(t.Values),
		limits: limitsOf(t.Limits), sandbox: sandboxOf(t.Sandbox),
		metadata: plainJSON(map[string]string{"agent": cmp.Or(o.AgentName, t.Name)}),
		name:     plainJSON(t.Name),
	}, nil
}

func usable(command string) error {
	switch {
	case command == "":
		return errors.New("it is missing: want the path of a program, or a name that is looked up in PATH")
	case strings.ContainsRune(command, 0):
		return errors.New("it has a NUL character")
	case strings.Contains(command, "/") && !filepath.IsAbs(command):
		return errors.New("want an absolute path, or a name without a slash")
	}
	return nil
}

// place checks the working folder and the one that it has to lie in, as far as
// they are there by now.
func place(cwd, root string) error {
	switch {
	case cwd != "" && !filepath.IsAbs(cwd):
		return fmt.Errorf("%s is not an absolute path", cwd)
	case root == "":
		return nil
	case cwd == "":
		return fmt.Errorf("it is missing: want a folder within cwdRoot, %s", root)
	case !filepath.IsAbs(root):
		return fmt.Errorf("cwdRoot: %s is not an absolute path", root)
	}
	realRoot, err1 := filepath.EvalSymlinks(root)
	realCwd, err2 := filepath.EvalSymlinks(cwd)
	if err1 == nil && err2 == nil && !inside(realRoot, realCwd) {
		return fmt.Errorf("%s lies outside of cwdRoot, %s", cwd, root)
	}
	return nil
}

func environment(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

func valuePatterns(values []string) []mask.Pattern {
	var out []mask.Pattern
	for _, v := range values {
		out = mask.Patterns(out, hideForms(v)...)
	}
	return out
}

func limitsOf(l toolconf.CommandLimits) confine.Limits {
	return confine.Limits{
		Memory: l.Memory, CPUs: l.CPUs, CPUTime: l.CPUTime,
		Processes: l.Processes, FileSize: l.FileSize, OpenFiles: l.OpenFiles,
	}
}

func sandboxOf(s toolconf.Sandbox) confine.Sandbox {
	on := s.Mode == toolconf.SandboxAuto || s.Mode == toolconf.SandboxRequired
	if !on {
		return confine.Sandbox{}
	}
	return confine.Sandbox{
		On: true, Required: s.Mode == toolconf.SandboxRequired, Kind: s.Kind,
		Read: s.Read, Write: s.Write, Network: s.Network,
	}
}

// Config is what it was made of. Its Secrets are all that are kept encrypted and
// hidden, those that the schema marks among them.
func (t *Tool) Config() toolconf.CommandTool { return t.conf }

// Schema is the JSON Schema of its input, as declared, with the type that MCP
// asks for.
func (t *Tool) Schema() json.RawMessage { return t.schema.json }

// Check returns a validation_error that names the property, where the input
// does not fit the schema or names a working folder that it may not, or that is
// not there.
func (t *Tool) Check(input json.RawMessage) error {
	if len(input) > MaxInput {
		return signalbox.Invalid("arguments", "The arguments have %d bytes; a command tool takes up to %d. Give it a file's name, or less.", len(input), MaxInput)
	}
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	if !isObject(input) {
		return signalbox.Invalid("arguments", "The arguments must be a JSON object such as {\"name\": \"value\"}.")
	}
	if err := t.schema.validate(input); err != nil {
		return err
	}
	if _, err := secretsOf(input, t.conf.Secrets); err != nil {
		return err
	}
	if t.conf.CwdFrom == "" {
		return nil
	}
	_, err := t.folder(input)
	if err == nil {
		return nil
	}
	var wrong *signalbox.Error
	if !errors.As(err, &wrong) {
		wrong = signalbox.Invalid("arguments."+t.conf.CwdFrom, "The argument %s names the working folder: %v.", shown(t.conf.CwdFrom), err)
	}
	wrong.Message = mask.Text(t.hide, wrong.Message)
	return wrong
}

// isObject reports whether it is a JSON object.
func isObject(raw json.RawMessage) bool {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
			return json.Valid(raw)
		}
		break
	}
	return false
}

// Answer is what a caller is given, an MCP CallToolResult as JSON: the seed's
// parts of a run that completed; of another its message, with isError, and what
// it had printed where it did not end by itself. The metadata is the seed's; where more was printed than the answer holds it has
// truncated, and the last text says so too.
func (t *Tool) Answer(o Outcome) (content, metadata json.RawMessage, isError bool) {
	if o.Reason != signalbox.ReasonCompleted {
		parts := []part{{"text", o.Message}}
		if o.Reason != signalbox.ReasonExitNonzero && strings.TrimSpace(o.Stdout) != "" {
			parts = append(parts, part{"text", StdoutPrefix + o.Stdout})
		}
		return plainJSON(parts), t.metadata, true
	}
	metadata = t.metadata
	if o.Truncated {
		metadata = append(metadata[:len(metadata)-1:len(metadata)-1], `,"truncated":true}`...)
	}
	parts := []part{{"text", cmp.Or(o.Stdout, NoOutput)}}
	if strings.TrimSpace(o.Stderr) != "" {
		parts = append(parts, part{"text", StderrPrefix + o.Stderr})
	}
	if o.Truncated {
		parts = append(parts, part{"text", signalbox.AnswerCut})
	}
	return plainJSON(parts), metadata, false
}

// part is a content block of an MCP result.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

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

// Texts of the seed async-task-queue.
const (
	NoOutput     = "(no output)"
	StderrPrefix = "stderr:\n"
	StdoutPrefix = "stdout:\n" // of a run that was ended, whose message comes first
)

// KeptOutput bounds what is kept of each output as the result, 1 MiB.
const KeptOutput = signalbox.OutputBytes

// SettleTime is how long others that a program started may go on to print when
// it has ended by itself: what it piped its output through has a last line.
const SettleTime = 250 * time.Millisecond

// CancelGrace is how long a run has between SIGTERM and SIGKILL when it is
// cancelled. One that is out of time gets SIGKILL at once (seed).
const CancelGrace = 2 * time.Second

// Run is one run of a tool.
type Run struct {
	TaskID   string          // in the line of JSON; "" for a call that is no task
	Mark     string          // unique; all it starts is found by it
	Input    json.RawMessage // an object that Check has passed, or empty
	Metadata json.RawMessage // an object, or empty
	Timeout  time.Duration   // before the tool's own; 0: the tool's
	Secrets  []string        // properties of the input that are hidden, beside the tool's own
	// Log takes what it prints as it comes, "stdout" or "stderr", from one
	// goroutine at a time: whole characters of UTF-8, secrets hidden. The text is
	// its until it returns.
	Log func(stream string, text []byte)
	// Started, if set, is told the program's process.
	Started func(pid int)
}

// Outcome is how a run ended. Nothing of it lives.
type Outcome struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // as the seed words it; never empty unless completed. Up to KeptOutput, being what was printed
	Stdout    string           // the first KeptOutput bytes, valid UTF-8, secrets hidden
	Stderr    string           // likewise
	Truncated bool             // more was printed than is kept
	ExitCode  *int             // nil where a signal ended it, or nothing was started
	Struck    string           // the limit that ended it: time, memory, processes, cpu_time, file_size, output; or ""
	Took      time.Duration
	// Alive are processes that could not be killed. Whoever gave the run its
	// slot must not give it to another while they live.
	Alive []int
	// Still, where there are any, says which of them live now.
	Still func() []int
}
