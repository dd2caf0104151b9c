package agentd

import (
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// passNames and passPrefixes are the allow-list: what a CLI gets of the
// daemon's own environment. Everything else stays with the daemon.
var passNames = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// passKind adds the variables by which each CLI is logged in and configured.
var passKind = map[string][]string{
	"claude":   {"ANTHROPIC_", "CLAUDE_", "DISABLE_", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"},
	"codex":    {"OPENAI_", "CODEX_", "AZURE_OPENAI_"},
	"opencode": {"OPENCODE_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "GEMINI_", "GOOGLE_GENERATIVE_AI_", "GROQ_", "MISTRAL_", "DEEPSEEK_", "XAI_"},
	"llm":      {"OPENAI_", "ANTHROPIC_"},
}

// keepOut are names with a passed prefix that would tie a run to the session
// in which the daemon itself was started, or move the CLI's state out of the
// home that the daemon locks.
var keepOut = []string{"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SANDBOX", "OPENCODE_CONFIG_DIR"}

// self tells a program whose agent it runs in, and where its director is.
func (d *Daemon) self() []string {
	env := []string{"SIGNALBOX_AGENT=" + d.cfg.Name}
	if d.cfg.Director != "" {
		env = append(env, "SIGNALBOX_DIRECTOR="+d.cfg.Director)
	}
	return env
}

// identity lets a run call other agents as this agent, within its execution:
// with the token that the director made for it. The daemon's own stays with it.
func (r *run) identity() []string {
	env := r.d.self()
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

// buildEnv makes the environment of a run from the allow-list, the runner's
// own variables and the task's, which may not be dangerous (checkEnv).
func (d *Daemon) buildEnv(home string, plan []string, task map[string]string) []string {
	vars := map[string]string{}
	for _, kv := range d.cfg.Environ {
		name, value, ok := strings.Cut(kv, "=")
		if ok && d.passes(name) {
			vars[name] = value
		}
	}
	for name, value := range task {
		vars[name] = value
	}
	vars["HOME"] = home
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

func (d *Daemon) passes(name string) bool {
	if slices.Contains(d.cfg.PassEnv, name) {
		return true
	}
	if slices.Contains(keepOut, name) {
		return false
	}
	if slices.Contains(passNames, name) || strings.HasPrefix(name, "LC_") {
		return true
	}
	for _, p := range passKind[d.cfg.Kind] {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// refusedNames and refusedPrefixes change which code runs, where it is looked
// for, or whom the agent's own credentials are sent to.
var refusedNames = []string{
	"PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "ZDOTDIR",
	"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "BUN_OPTIONS", "BUN_CONFIG_REGISTRY",
	"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PERL5LIB", "PERL5OPT", "PERLLIB", "RUBYLIB", "RUBYOPT",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS",
	"EDITOR", "VISUAL", "PAGER", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
}

var refusedPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "SIGNALBOX_", "XDG_", "NPM_CONFIG_", "UV_", "PIP_", "GLIBC_", "MALLOC_"}

// checkEnv refuses variables that a task may not set.
func checkEnv(env map[string]string) *refusal {
	if len(env) > 200 {
		return invalid("env has %d variables: 200 at most", len(env))
	}
	for _, name := range sortedKeys(env) {
		upper := strings.ToUpper(name)
		switch {
		case !envForm.MatchString(name):
			return invalid("env: %q is not a variable name", preview(name))
		case strings.ContainsRune(env[name], 0):
			return invalid("env.%s may not contain NUL characters", name)
		case len(env[name]) > 96<<10:
			return invalid("env.%s has %d bytes: 98304 at most", name, len(env[name]))
		case slices.Contains(refusedNames, upper), cliSetting(upper):
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

// checkEnvBy refuses variables of a task that came by a director from somebody
// who is no admin there, but for those that the configuration allows. A director
// that does not say who it was may be one that asks nobody.
func (d *Daemon) checkEnvBy(t *api.AgentTask) *refusal {
	if t.Director == "" || t.EnvBy == string(signalbox.EnvByAdmin) {
		return nil
	}
	if name := signalbox.EnvNotAllowed(d.cfg.TaskEnv, t.Env); name != "" {
		return invalid("env.%s may be set by admins alone at this agent: who runs it allows names to others with agent.task_env", name)
	}
	return nil
}

// cliPrefixes begin the CLIs' own variables. They can name programs to run
// (CLAUDE_CODE_SHELL_PREFIX), settings (OPENCODE_CONFIG_CONTENT) and servers
// that the agent's credentials would be sent to (ANTHROPIC_BASE_URL), so of
// them a task may bring only what cliOwn lists: a key or a model of its own.
var (
	cliPrefixes = []string{"ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "AZURE_OPENAI_", "OPENCODE_", "OPENROUTER_", "GEMINI_", "GOOGLE_GENERATIVE_AI_", "GROQ_", "MISTRAL_", "DEEPSEEK_", "XAI_"}
	cliOwn      = []string{"_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_MODEL"}
)

func cliSetting(upper string) bool {
	has := func(p string) bool { return strings.HasPrefix(upper, p) }
	ends := func(s string) bool { return strings.HasSuffix(upper, s) }
	return slices.ContainsFunc(cliPrefixes, has) && !slices.ContainsFunc(cliOwn, ends)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func envValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v
		}
	}
	return ""
}
