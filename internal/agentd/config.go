package agentd

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Limits that belong to the contract and are not configurable.
const (
	historySize    = 100
	tailSize       = 128 << 10 // bytes of output in memory
	resultCap      = 1 << 20   // bytes of a stored answer
	resultInRecord = 64 << 10  // bytes of an answer stored in the record
	runningOutput  = 32 << 10  // bytes of output in the status of a running task
	maxWait        = 60 * time.Second
	maxTimeout     = 7 * 24 * 3600 // seconds
)

// Config configures a Daemon. Only Kind and DataDir have no default.
type Config struct {
	Name    string // shown in status; default: Kind
	Kind    string // claude, codex, opencode, command, llm or demo
	Version string // shown in status; default "dev"
	DataDir string // records, logs, sessions; created 0700, for one daemon only

	WorkDir      string    // where tasks run; default: the current folder
	ProjectRoots []string  // folders that project.path must lie in; default: WorkDir
	Workspace    Workspace // default: WorkDir itself
	Landing      Landing   // of the work in worktrees
	Home         string    // HOME of the CLI; default: the user's
	Checks       Checks    // of the work of runs

	Slots         int    // concurrent executions, 1 to 64; default 1
	IsolatedSlots int    // additional isolated executions; default 4
	Model         string // model of tasks that name neither model nor tier

	Token string   // bearer token that every request must carry; required unless on loopback
	Hosts []string // host names accepted in the Host header besides the loopback ones

	DefaultTimeout time.Duration // for tasks without timeout_seconds; default 30 min
	KillGrace      time.Duration // delay from SIGTERM to SIGKILL; default 5 s
	CancelWait     time.Duration // how long a cancel request waits for proof; default 5 s
	OutputCheck    time.Duration // for a pulling agent: how often a run without output checks that the director has its log; default 5 s
	LockWait       time.Duration // maximum wait for a folder in use elsewhere; default 10 min
	SettleWait     time.Duration // time for a CLI to exit after its terminal event; default 10 s
	LogCap         int64         // bytes of output.log and of events.jsonl, each; default 64 MiB
	BodyLimit      int64         // bytes of a request body; default 2 MiB

	Runner  runner.Options
	Environ []string // environment to take the allow-list from; default os.Environ()
	PassEnv []string // names to pass to the CLI besides the allow-list
	TaskEnv []string // names that tasks of non-admins may set; * is a wildcard

	Pull bool // set if Pull is called rather than Serve: the end of a run is kept until a director has acknowledged it

	// Tools says whether coding CLIs are connected to the director's gateway: auto (default) if
	// the gateway has tools, director always, none never.
	Tools string

	Account string // account that its runs use; default: derived from the kind and the login

	Director string // URL that runs use to call other agents; "": unknown

	Terminal        bool          // offer terminals; needs Token
	TerminalCommand []string      // program of a terminal; default: the CLI; for the kinds command, llm and demo: $SHELL
	TerminalIdle    time.Duration // idle timeout of a terminal; default 15 min

	Traces  trace.TracerProvider // creates a span per execution; nil: none
	ExecLog string               // file that gets a JSON line at the start and the end of each execution
	Logger  *slog.Logger
}

// withDefaults applies defaults and validates. Errors name the field and its range.
func (c Config) withDefaults() (Config, error) {
	if c.Kind == "" {
		return c, fmt.Errorf("kind is required: claude, codex, opencode, command, llm or demo")
	}
	if c.DataDir == "" {
		return c, fmt.Errorf("data dir is required")
	}
	c.Name = cmp.Or(c.Name, c.Kind)
	c.Version = cmp.Or(c.Version, "dev")
	c.Tools = cmp.Or(c.Tools, toolsAuto)
	c.Workspace.Kind = cmp.Or(c.Workspace.Kind, workspace.KindFolder)
	c.Checks.From = cmp.Or(c.Checks.From, signalbox.ChecksOfAdmins)
	c.Slots = cmp.Or(c.Slots, 1)
	c.IsolatedSlots = cmp.Or(c.IsolatedSlots, 4)
	c.DefaultTimeout = cmp.Or(c.DefaultTimeout, 30*time.Minute)
	c.KillGrace = cmp.Or(c.KillGrace, 5*time.Second)
	c.CancelWait = cmp.Or(c.CancelWait, 5*time.Second)
	c.OutputCheck = cmp.Or(c.OutputCheck, 5*time.Second)
	c.LockWait = cmp.Or(c.LockWait, 10*time.Minute)
	c.SettleWait = cmp.Or(c.SettleWait, 10*time.Second)
	c.TerminalIdle = cmp.Or(c.TerminalIdle, 15*time.Minute)
	c.LogCap = cmp.Or(c.LogCap, 64<<20)
	c.BodyLimit = cmp.Or(c.BodyLimit, 2<<20)
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if err := c.check(); err != nil {
		return c, err
	}
	if err := c.resolvePaths(); err != nil {
		return c, err
	}
	return c, c.checkWorkspace()
}

func (c *Config) check() error {
	switch {
	case c.Slots < 1 || c.Slots > 64:
		return fmt.Errorf("slots is %d: 1 to 64", c.Slots)
	case c.IsolatedSlots < 1 || c.IsolatedSlots > 64:
		return fmt.Errorf("isolated slots is %d: 1 to 64", c.IsolatedSlots)
	case c.DefaultTimeout < 0 || c.KillGrace < 0 || c.CancelWait < 0 || c.OutputCheck < 0 || c.LockWait < 0 || c.SettleWait < 0 || c.TerminalIdle < 0:
		return fmt.Errorf("durations may not be negative")
	case c.LogCap < 4096 || c.BodyLimit < 1024:
		return fmt.Errorf("log cap must be at least 4096 bytes and body limit at least 1024")
	case c.Account != "" && !signalbox.ValidName(c.Account):
		return fmt.Errorf("account %q is not a name: 1 to 64 letters, digits, dots, underscores or hyphens", c.Account)
	case c.Tools != toolsAuto && c.Tools != toolsDirector && c.Tools != toolsNone:
		return fmt.Errorf("tools is %q: auto, director or none", c.Tools)
	case len(c.TerminalCommand) > 0 && c.TerminalCommand[0] == "":
		return fmt.Errorf("the terminal command has no program")
	case c.Landing.Method != "" && c.Landing.Method != workspace.MethodRebase && c.Landing.Method != workspace.MethodSquash:
		return fmt.Errorf("landing method is %q: rebase or squash", c.Landing.Method)
	case c.Model != "" && !validModel(c.Model):
		return fmt.Errorf("model %q is not a model name", c.Model)
	}
	return c.checkChecks()
}

func (c *Config) resolvePaths() error {
	var err error
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return err
	}
	c.WorkDir = cmp.Or(c.WorkDir, ".")
	if c.WorkDir, err = realDir(c.WorkDir); err != nil {
		return fmt.Errorf("work dir: %w", err)
	}
	if c.Home == "" {
		c.Home = envValue(c.Environ, homeVariable)
	}
	if c.Home == "" {
		return fmt.Errorf("home is required where %s is not set", homeVariable)
	}
	if c.Home, err = filepath.Abs(c.Home); err != nil {
		return err
	}
	if len(c.ProjectRoots) == 0 {
		c.ProjectRoots = []string{c.WorkDir}
	}
	roots := make([]string, len(c.ProjectRoots))
	for i, r := range c.ProjectRoots {
		if roots[i], err = realDir(r); err != nil {
			return fmt.Errorf("project root: %w", err)
		}
	}
	c.ProjectRoots = roots
	return nil
}

// realDir returns the absolute path of an existing folder without symlinks.
func realDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	return real, nil
}
