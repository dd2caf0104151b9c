package agentd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/mask"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// runDirs are the folders of a run.
type runDirs struct {
	home     string // HOME of the program
	dir      string // its working directory
	worktree string // name of its worktree; "": none
	kind     string // kind of the workspace
}

// dirs returns the folders of a run. Slot 0 uses the configured ones. Every other slot and every
// isolated run has its own home, so that no two runs share a CLI's state, and its own working
// directory, unless all slots work in one. A conversation continues in its folder.
func (r *run) dirs() runDirs {
	d, rec := r.d, r.record()
	p := runDirs{home: d.cfg.Home, dir: d.cfg.WorkDir}
	own := ""
	switch {
	case rec.Isolated:
		own = d.disk.runDir(rec.TaskID)
	case rec.Slot > 0:
		own = filepath.Join(d.cfg.DataDir, "slots", strconv.Itoa(rec.Slot))
	}
	if own != "" {
		p.home = filepath.Join(own, "home")
		if rec.Isolated || d.folder == "" {
			p.dir = filepath.Join(own, "work")
		}
	}
	if !rec.Isolated {
		if s, ok := d.disk.loadSession(rec.SessionID); ok {
			p.home = s.Home
			if _, err := realDir(s.Dir); err == nil {
				p.dir = s.Dir
			}
		}
	}
	if r.job.dir != "" {
		p.dir = r.job.dir
	}
	p.worktree = r.worktreeName()
	return p
}

// fromWorkDir resolves a program given relative to the agent's working directory, such as
// ./job.sh, even if the run has another directory.
func (r *run) fromWorkDir(argv []string, dir string) []string {
	name := argv[0]
	if filepath.IsAbs(name) || !strings.ContainsRune(name, filepath.Separator) {
		return argv
	}
	if dir != r.d.cfg.WorkDir {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil { // exists in the project or worktree
			return argv
		}
	}
	return append([]string{filepath.Join(r.d.cfg.WorkDir, name)}, argv[1:]...)
}

// prepare creates the folders and locks them. An unused worktree may be removed in between;
// then prepare creates it again.
func (r *run) prepare(p runDirs) (held []*dirLock, err error) {
	for range prepareTries {
		var dirs []string
		if dirs, err = r.makeDirs(p); err == nil {
			held, err = r.lock(dirs)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return held, err
}

const prepareTries = 10

// makeDirs creates the folders and returns those to lock.
func (r *run) makeDirs(p runDirs) ([]string, error) {
	locks := []string{p.dir}
	if p.worktree != "" {
		locks[0] = r.d.disk.worktreeDir(p.worktree)
	}
	if err := os.MkdirAll(locks[0], 0o700); err != nil {
		return nil, err
	}
	if p.home != r.d.cfg.Home {
		if err := os.MkdirAll(p.home, 0o700); err != nil {
			return nil, err
		}
		r.linkLogins(p.home)
	}
	if state := r.d.runner.StateDir(p.home); state != "" {
		if err := os.MkdirAll(state, 0o700); err != nil {
			return nil, err
		}
		locks = append(locks, state)
	}
	return locks, nil
}

// linkLogins links the login files of the configured home into a run's own home. A link stays
// valid when the login is refreshed.
func (r *run) linkLogins(home string) {
	for _, name := range r.d.runner.LoginFiles() {
		from, to := filepath.Join(r.d.cfg.Home, name), filepath.Join(home, name)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			continue // the CLI reports that there is no login
		}
		_ = os.Symlink(from, to) // may exist from the last run
	}
}

// conversation returns the CLI's ID of the run's conversation, and whether it exists.
func (r *run) conversation(home string) (cli string, resume bool) {
	rec := r.record()
	if rec.Isolated {
		return "", false
	}
	if s, ok := r.d.disk.loadSession(rec.SessionID); ok && r.d.runner.SessionExists(s.Home, s.CLI) {
		return s.CLI, true
	}
	if r.d.runner.SessionExists(home, rec.SessionID) {
		return rec.SessionID, true
	}
	return r.d.runner.NewSession(rec.SessionID), false
}

// goOn is the next prompt of a resumed conversation.
const goOn = "Go on where you left off: a usage limit of the provider interrupted this conversation."

// goneError says that a parked run cannot be resumed.
type goneError struct{ kind, session string }

func (e *goneError) Error() string {
	gone := "an isolated run keeps no conversation"
	if e.session != "" {
		gone = fmt.Sprintf("%s no longer has the conversation %s here", e.kind, e.session)
	}
	return gone + ", so the task cannot go on where it was parked; what it had done so far stays done: look at that, and retry the task to start it anew"
}

// prompt is the prompt for the program. A resumed run only asks to go on if the
// conversation already has its prompt; one of kind llm has it once the model has
// answered.
func (r *run) prompt(known bool) (string, error) {
	resume := r.task.Resume
	switch {
	case r.turn != "":
		return r.turn, nil
	case resume == nil:
	case known && (resume.Began || !r.d.runner.Inside()):
		return cmp.Or(resume.Text, goOn), nil
	case resume.Began:
		return "", &goneError{r.d.cfg.Kind, r.record().SessionID}
	}
	return r.task.Prompt, nil
}

// secrets are values to redact in output, answers and records, because others may
// read them.
func (r *run) secrets() []mask.Pattern { return mask.Patterns(nil, r.task.RunToken) }

// printableText makes a CLI's text safe for messages and terminals.
func (r *run) printableText(text string) string {
	return mask.Text(r.secrets(), runner.Plain(validText([]byte(text))))
}

// redactor is a writer that redacts secrets in a stream. It holds back what may be the
// beginning of a secret until more is written.
type redactor struct {
	to   io.Writer
	mask *mask.Masker
}

func (r *run) newRedactor(to io.Writer) *redactor {
	return &redactor{to: to, mask: mask.New(r.secrets())}
}

func (h *redactor) Write(b []byte) (int, error) {
	if _, err := h.to.Write(h.mask.Feed(b, false)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// end flushes what was held back.
func (h *redactor) end() { _, _ = h.to.Write(h.mask.End()) } // the output of a run never fails

// allowedVars is the allow-list of the daemon's environment variables for CLIs.
var allowedVars = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// kindVars adds the login and configuration variables of each CLI.
var kindVars = map[string][]string{
	"claude":   {"ANTHROPIC_", "CLAUDE_", "DISABLE_", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"},
	"codex":    {"OPENAI_", "CODEX_", "AZURE_OPENAI_"},
	"opencode": {"OPENCODE_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "GEMINI_", "GOOGLE_GENERATIVE_AI_", "GROQ_", "MISTRAL_", "DEEPSEEK_", "XAI_"},
	"llm":      {"OPENAI_", "ANTHROPIC_"},
}

// excludedVars match an allowed prefix, but would tie a run to the session in which the
// daemon was started, or move the CLI's state out of the locked home.
var excludedVars = []string{"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SANDBOX", "OPENCODE_CONFIG_DIR"}

// selfEnv tells a program its agent and director.
func (d *Daemon) selfEnv() []string {
	env := []string{"SIGNALBOX_AGENT=" + d.cfg.Name}
	if d.cfg.Director != "" {
		env = append(env, "SIGNALBOX_DIRECTOR="+d.cfg.Director)
	}
	return env
}

// around is the environment that checks and other programs beside the CLI get as well: the
// identity of the agent, and the resources that the run holds.
func (r *run) around() []string {
	env := r.d.selfEnv()
	for _, h := range r.task.Holds {
		env = append(env, h.Env+"="+cmp.Or(strings.Join(h.Values, ","), strconv.Itoa(h.N)))
	}
	return env
}

// identity lets a run call other agents as this agent, with the token that the director made
// for the run. The daemon's own token is not passed.
func (r *run) identity() []string {
	env := r.around()
	if id := r.record().QueueID; id != "" {
		env = append(env, "SIGNALBOX_QUEUE_ID="+id)
	}
	if token := r.task.RunToken; token != "" {
		env = append(env, "SIGNALBOX_TOKEN="+token)
	}
	if parent := r.trace.parent(); parent != "" {
		env = append(env, "TRACEPARENT="+parent)
	}
	return env
}

// buildEnv returns the environment of a run: the allowed variables of the daemon, the
// runner's variables, and those of the task, which checkEnv has checked.
func (d *Daemon) buildEnv(home string, plan []string, task map[string]string) []string {
	vars := map[string]string{}
	for _, kv := range d.cfg.Environ {
		name, value, ok := strings.Cut(kv, "=")
		if name = proc.VariableName(name); ok && d.isAllowed(name) {
			vars[name] = value
		}
	}
	for name, value := range task {
		vars[proc.VariableName(name)] = value
	}
	vars[homeVariable] = home
	vars["HOME"] = home // also on Windows, for programs ported from other systems
	for _, kv := range plan {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

func (d *Daemon) isAllowed(name string) bool {
	if slices.Contains(d.cfg.PassEnv, name) {
		return true
	}
	if slices.Contains(excludedVars, name) {
		return false
	}
	return slices.Contains(allowedVars, name) || slices.Contains(proc.SystemVariables, name) || strings.HasPrefix(name, "LC_") ||
		slices.ContainsFunc(kindVars[d.cfg.Kind], func(p string) bool { return strings.HasPrefix(name, p) })
}

// refusedNames and refusedPrefixes change which code runs, or where the agent's credentials
// are sent.
var refusedNames = []string{
	"PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "ZDOTDIR",
	"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "BUN_OPTIONS", "BUN_CONFIG_REGISTRY",
	"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PERL5LIB", "PERL5OPT", "PERLLIB", "RUBYLIB", "RUBYOPT",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS",
	"EDITOR", "VISUAL", "PAGER", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
}

var refusedPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "SIGNALBOX_", "XDG_", "NPM_CONFIG_", "UV_", "PIP_", "GLIBC_", "MALLOC_"}

// checkEnv refuses variables that no task may set.
func checkEnv(env map[string]string) *refusal {
	if len(env) > 200 {
		return invalid("env has %d variables: 200 at most", len(env))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		upper := strings.ToUpper(name)
		switch {
		case !signalbox.ValidEnvName(name):
			return invalid("env: %q is not a variable name", preview(name))
		case strings.ContainsRune(env[name], 0):
			return invalid("env.%s may not contain NUL characters", name)
		case len(env[name]) > 96<<10:
			return invalid("env.%s has %d bytes: 98304 at most", name, len(env[name]))
		case slices.Contains(refusedNames, upper), slices.Contains(proc.SystemVariables, upper), cliSetting(upper):
			return invalid("env.%s may not be set by a task", name)
		}
		for _, p := range refusedPrefixes {
			if strings.HasPrefix(upper, p) {
				return invalid("env.%s may not be set by a task", name)
			}
		}
	}
	return nil
}

// checkHolds refuses variables that a director may not set.
func checkHolds(holds []api.AgentHold) *refusal {
	env := map[string]string{}
	for _, h := range holds {
		if h.Env != signalbox.ResourceEnv(h.Resource) || !signalbox.ValidEnvName(h.Env) {
			env[h.Env] = strings.Join(h.Values, ",")
		} else if strings.ContainsRune(strings.Join(h.Values, ""), 0) {
			return invalid("holds.%s may not contain NUL characters", h.Env)
		}
	}
	return checkEnv(env)
}

// checkEnvBy refuses variables of tasks from a director's non-admins, except those that the
// configuration allows. A director that does not name the submitter may run without
// authentication.
func (d *Daemon) checkEnvBy(t *api.AgentTask) *refusal {
	if t.Director == "" || t.EnvBy == string(signalbox.EnvByAdmin) {
		return nil
	}
	if name := signalbox.EnvNotAllowed(d.cfg.TaskEnv, t.Env); name != "" {
		return invalid("only admins may set env.%s at this agent: its operator can allow names to others with agent.task_env", name)
	}
	return nil
}

// cliPrefixes are the prefixes of the CLIs' own variables. These can name
// programs to run (CLAUDE_CODE_SHELL_PREFIX), settings
// (OPENCODE_CONFIG_CONTENT) and servers that would get the agent's
// credentials (ANTHROPIC_BASE_URL), so a task may set only those in cliOwn: a
// key or a model of its own.
var (
	cliPrefixes = []string{"ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "AZURE_OPENAI_", "OPENCODE_", "OPENROUTER_", "GEMINI_", "GOOGLE_GENERATIVE_AI_", "GROQ_", "MISTRAL_", "DEEPSEEK_", "XAI_"}
	cliOwn      = []string{"_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_MODEL"}
)

func cliSetting(upper string) bool {
	has := func(p string) bool { return strings.HasPrefix(upper, p) }
	ends := func(s string) bool { return strings.HasSuffix(upper, s) }
	return slices.ContainsFunc(cliPrefixes, has) && !slices.ContainsFunc(cliOwn, ends)
}

func envValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, v, _ := strings.Cut(kv, "="); proc.VariableName(n) == name {
			return v
		}
	}
	return ""
}
