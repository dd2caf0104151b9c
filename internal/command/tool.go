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

// Options are shared by all tools of a process.
type Options struct {
	// Host limits the runs. Without it, only time and output are limited, and a
	// tool that requires a sandbox does not run.
	Host      *confine.Host
	AgentName string // metadata.agent of all results (AGENT_NAME); "": the tool's name
	Log       *slog.Logger
}

// Tool is a command tool, ready to run. Its methods are safe for concurrent
// use.
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
	name     []byte // encoded as JSON
}

// New compiles a tool: its schema and its paths. An error names the key with
// the mistake. Whether the program exists is checked when a run begins.
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

// place checks the working folder and the folder that must contain it, as far
// as they exist yet.
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

// Config returns the configuration. Its Secrets are all properties that are
// encrypted and masked, including those that the schema marks.
func (t *Tool) Config() toolconf.CommandTool { return t.conf }

// Schema is the JSON Schema of the input, as declared, with the type that MCP
// requires.
func (t *Tool) Schema() json.RawMessage { return t.schema.json }

// Check returns a validation_error that names the property, if the input
// violates the schema, or names a working folder that is not allowed or does
// not exist.
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

// isObject reports whether raw is a JSON object.
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

// Answer is the answer to a caller, an MCP CallToolResult as JSON. If the run completed, it has the
// seed's parts; otherwise it has the message, with isError, and the output so far if the run was
// ended. The metadata is the seed's; if the output was longer than the answer, it has truncated,
// and the last text says so too.
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

// takeBox takes a box for the run.
func (u *run) takeBox() error {
	t := u.t
	if t.host == nil {
		if t.sandbox.Required {
			return errors.New("the sandbox that this tool requires is not available: this process confines no programs")
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

// freeBox returns the box. If it cannot be emptied, a process of the run is
// alive, and the run counts as not ended.
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
		if knows { // the surviving process has died: from now on the box belongs to another run
			o.Alive, o.Still = nil, nil
		}
		return
	}
	u.t.log.Error("the box of a command's run is not reused", "tool", u.t.conf.Name, "mark", u.r.Mark, "error", err)
	if alive, _ := u.box.Alive(); len(alive) > 0 && o.Still == nil {
		o.Alive, o.Still = alive, u.aliveInBox
	}
}

func (u *run) aliveInBox() []int {
	alive, _ := u.box.Alive()
	return alive
}

// unkillable records that a process of the run is still alive.
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
	u.t.log.Error("processes of a command's run are still alive after SIGKILL", "tool", u.t.conf.Name, "mark", u.r.Mark, "pids", o.Alive)
}

// Texts of the seed async-task-queue.
const (
	NoOutput     = "(no output)"
	StderrPrefix = "stderr:\n"
	StdoutPrefix = "stdout:\n" // for a run that was ended; its message comes first
)

// KeptOutput is how much of each output is kept as the result, 1 MiB.
const KeptOutput = signalbox.OutputBytes

// SettleTime is how long child processes may continue to print after the
// program has ended by itself: a program behind a pipe still has a last line.
const SettleTime = 250 * time.Millisecond

// CancelGrace is the time between SIGTERM and SIGKILL when a run is
// cancelled. After a timeout SIGKILL is sent at once (seed).
const CancelGrace = 2 * time.Second

// Run is one run of a tool.
type Run struct {
	TaskID   string          // for the line of JSON; "" for a call that is not a task
	Mark     string          // unique; identifies all processes of the run
	Input    json.RawMessage // an object that Check has accepted, or empty
	Metadata json.RawMessage // an object, or empty
	Timeout  time.Duration   // has precedence over the tool's own; 0: the tool's
	Secrets  []string        // properties of the input that are masked, in addition to the tool's own
	// Log receives the output as it arrives, for "stdout" or "stderr": whole
	// UTF-8 characters, with secrets masked. Calls do not overlap. The text is
	// only valid until Log returns.
	Log func(stream string, text []byte)
	// Started, if set, is called with the program's PID.
	Started func(pid int)
}

// Outcome is how a run ended. None of its processes is alive, except for
// Alive.
type Outcome struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // in the seed's words; never empty unless completed. Up to KeptOutput bytes, because it may be output
	Stdout    string           // the first KeptOutput bytes, valid UTF-8, secrets masked
	Stderr    string           // likewise
	Truncated bool             // more was printed than is kept
	ExitCode  *int             // nil if a signal ended it, or nothing was started
	Struck    string           // the limit that ended it: time, memory, processes, cpu_time, file_size, output; or ""
	Took      time.Duration
	// Alive are processes that could not be killed. While they are alive, the
	// run's slot must not be given to another run.
	Alive []int
	// Still returns those of them that are alive now; nil: there are none.
	Still func() []int
}
