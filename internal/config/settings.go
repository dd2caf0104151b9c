package config

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

const (
	wantName   = "1 to 64 letters, digits, dots, underscores or hyphens"
	wantURL    = "a URL such as http://127.0.0.1:8080"
	wantAddr   = "host:port, such as 127.0.0.1:8080"
	wantToken  = "a token of printable characters without spaces"
	wantRemote = "the address of a git repository without a password, such as https://host/owner/name.git or git@host:owner/name.git, or an absolute path"
	day        = 24 * time.Hour
)

var logLevels = []string{"debug", "verbose", "info", "warn", "error"}

// settings are all the keys of the file. They set fields of c.
func settings(c *Config) schema {
	return schema{
		text("director", wantURL, &c.Director, validDirector).from("SIGNALBOX_DIRECTOR"),
		text("token", wantToken, &c.Token, validToken).hidden().from("SIGNALBOX_TOKEN"),
		path("token_file", &c.TokenFile).from("SIGNALBOX_TOKEN_FILE"),
		boolean("open", &c.Open),
		text("addr", wantAddr, &c.Addr, validAddr).from("SIGNALBOX_ADDR"),
		path("data", &c.Data).from("SIGNALBOX_DATA", "AG_QUEUE_DIR"),
		text("store", "sqlite:[FILE], postgres://…, redis://… or memory:", &c.Store, validStore).hidden().from("SIGNALBOX_STORE"),
		text("instance", wantName, &c.Instance, signalbox.ValidName).from("SIGNALBOX_INSTANCE"),
		text("advertise", wantURL, &c.Advertise, validURL).from("SIGNALBOX_ADVERTISE"),
		list("hosts", "host names", &c.Hosts, validHost),
		list("public_hosts", "host names", &c.Hosts, validHost), // the same as hosts
		oneOf("log.format", &c.Log.Format, "text", "json"),
		oneOf("log.level", &c.Log.Level, logLevels...),

		boolean("scheduler.enabled", &c.Scheduler.Enabled).from("SIGNALBOX_SCHEDULER_ENABLED"),
		zone("scheduler.timezone", &c.Scheduler.Timezone).from("SIGNALBOX_SCHEDULER_TIMEZONE"),
		text("scheduler.addr", wantAddr, &c.Scheduler.Addr, validAddr).from("SIGNALBOX_SCHEDULER_ADDR"),
		text("scheduler.token", wantToken, &c.Scheduler.Token, validToken).hidden().from("SIGNALBOX_SCHEDULER_TOKEN"),
		{key: "jobs", nested: decodeJobs},
		// Keys of the seed work-queue's scheduler.yaml.
		{key: "port", want: "a port from 0 to 65535", set: c.setSchedulerPort},
		oneOf("log_level", &c.Log.Level, logLevels...),
		text("director_url", wantURL, &c.Director, validDirector),

		whole("queue.max_size", 1, 1_000_000, &c.Queue.MaxSize).from("SIGNALBOX_QUEUE_MAX_SIZE", "AG_QUEUE_MAX_SIZE"),
		whole("queue.chat_max_size", 1, 10_000, &c.Queue.ChatMaxSize).from("SIGNALBOX_CHAT_MAX_SIZE", "MAX_QUEUE_SIZE"),
		duration("queue.wait_timeout", time.Second, 30*day, &c.Queue.WaitTimeout).from("SIGNALBOX_QUEUE_WAIT_TIMEOUT", "QUEUE_WAIT_TIMEOUT"),
		whole("queue.fleet", 0, 1_000_000, &c.Queue.Fleet),
		whole("queue.max_attempts", 1, 1000, &c.Queue.MaxAttempts).from("SIGNALBOX_QUEUE_MAX_ATTEMPTS", "AG_QUEUE_MAX_ATTEMPTS"),
		oneOf("queue.on_lost", &c.Queue.OnLost, signalbox.LostFail, signalbox.LostRequeue).from("SIGNALBOX_QUEUE_ON_LOST"),
		duration("queue.dispatch_timeout", time.Millisecond, time.Hour, &c.Queue.DispatchTimeout).from("SIGNALBOX_QUEUE_DISPATCH_TIMEOUT", "AG_QUEUE_DISPATCH_TIMEOUT"),
		duration("queue.age_step", 0, day, &c.Queue.AgeStep),
		whole("queue.submit_tasks", 0, 1_000_000, &c.Queue.SubmitTasks),
		whole("queue.submit_bytes", 0, 1<<40, &c.Queue.SubmitBytes),
		whole("queue.retention_bytes", 0, 1<<50, &c.Queue.RetentionBytes),
		whole("queue.caller_retention_bytes", 0, 1<<50, &c.Queue.CallerRetentionBytes),
		duration("queue.retention", time.Minute, 3650*day, &c.Queue.Retention),

		whole("bypass.slots", 0, signalbox.MaxAgentSlots, &c.Bypass.Slots),
		whole("bypass.fleet", 1, 1_000_000, &c.Bypass.Fleet),
		whole("landing.rounds", 0, signalbox.MaxLandingRounds, &c.LandingRounds),

		priority("user", c, signalbox.SourceUser),
		priority("schedule", c, signalbox.SourceScheduler),
		priority("agent", c, signalbox.SourceAgent),
		priority("web", c, signalbox.SourceWeb),
		priority("cli", c, signalbox.SourceCLI),
		priority("api", c, signalbox.SourceAPI),

		duration("execution_ttl", time.Second, day, &c.ExecutionTTL).from("SIGNALBOX_EXECUTION_TTL", "EXECUTION_TTL"),
		limit("stall_limit", time.Second, 168*time.Hour, &c.StallLimit),
		duration("run_grace", time.Second, time.Hour, &c.RunGrace),
		boolean("terminal", &c.Terminal),
		duration("session_grace", 0, day, &c.SessionGrace),
		duration("grace", 0, day, &c.Grace),
		oneOf("on_shutdown", &c.OnShutdown, "leave", "stop"),
		{key: "accounts", nested: decodeAccounts},
		{key: "resources", nested: decodeResources},
		{key: "budgets.task", nested: decodeBudget(&c.Budgets.Task)},
		{key: "budgets.day", nested: decodeBudget(&c.Budgets.Day)},
		{key: "budgets.users", nested: decodeBudgets("users", "want a user: an e-mail address, or a key such as user:ann, as signalbox usage --by user lists them, or *", validOwner, &c.Budgets.Users)},
		{key: "budgets.agents", nested: decodeBudgets("agents", "want the name of an agent, or *", signalbox.ValidName, &c.Budgets.Agents)},
		{key: "budgets.accounts", nested: decodeBudgets("accounts", "want the name of an account, as signalbox accounts lists them, or *", signalbox.ValidName, &c.Budgets.Accounts)},
		{key: "agents", nested: decodeAgents},
		paths("tools", &c.ToolFiles).from("SIGNALBOX_TOOLS").several(),
		{key: "queues", nested: keepForTools},
		{key: "mcpServers", nested: keepForTools},
		{key: "restTools", nested: keepForTools},
		{key: "openapiSpecs", nested: keepForTools},
		whole("commands.max_concurrent", 1, signalbox.MaxAgentSlots, &c.Commands.MaxConcurrent).from("SIGNALBOX_COMMANDS_MAX_CONCURRENT"),
		whole("commands.max_waiting", 0, 1_000_000, &c.Commands.MaxWaiting).from("SIGNALBOX_COMMANDS_MAX_WAITING"),
		text("commands.agent_name", "a name", &c.Commands.AgentName, notEmpty).from("SIGNALBOX_COMMANDS_AGENT_NAME", "AGENT_NAME"),
		oneOf("commands.limits", &c.Commands.Limits, "auto", "cgroup2", "rlimit"),
		duration("commands.task_after", 0, time.Hour, &c.Commands.TaskAfter),
		{key: "commandTools", nested: keepForTools},
		boolean("seed_metrics", &c.SeedMetrics),
		{key: "discover", want: "a range of ports such as 9000-9010, at most 100 of them, or off", set: c.setPorts},

		text("agent.name", wantName, &c.Agent.Name, signalbox.ValidName),
		oneOf("agent.kind", &c.Agent.Kind, "claude", "codex", "opencode", "command", "llm", "demo"),
		text("agent.addr", wantAddr, &c.Agent.Addr, validAddr),
		text("agent.token", wantToken, &c.Agent.Token, validToken).hidden().from("SIGNALBOX_AGENT_TOKEN"),
		boolean("agent.pull", &c.Agent.Pull),
		list("agent.directors", "URLs such as https://director-2.example", &c.Agent.Directors, validURL),
		path("agent.workdir", &c.Agent.WorkDir),
		path("agent.home", &c.Agent.Home),
		oneOf("agent.workspace", &c.Agent.Workspace.Kind, signalbox.WorkspaceFolder, signalbox.WorkspaceWorktree, signalbox.WorkspaceClone),
		text("workspace.repo", wantRemote, &c.Agent.Workspace.Repo, signalbox.ValidRemote),
		list("workspace.repos", wantRemote+", with * for any characters but slashes", &c.Agent.Workspace.Repos, signalbox.ValidRemotePattern),
		text("workspace.base", "a branch, tag or commit", &c.Agent.Workspace.Base, signalbox.ValidRevision),
		list("workspace.setup", "shell commands", &c.Agent.Workspace.Setup, notEmpty),
		list("workspace.carry", "paths in the repository with * for any characters but slashes, such as .env", &c.Agent.Workspace.Carry, signalbox.ValidPathPattern),
		size("workspace.max_bytes", &c.Agent.Workspace.MaxBytes),
		size("workspace.min_free", &c.Agent.Workspace.MinFree),
		oneOf("landing.method", &c.Agent.Landing.Method, "rebase", "squash"),
		boolean("landing.fast_forward", &c.Agent.Landing.FastForward),
		boolean("landing.hooks", &c.Agent.Landing.Hooks),
		whole("agent.slots", 1, 64, &c.Agent.Slots),
		whole("agent.isolated_slots", 1, 64, &c.Agent.IsolatedSlots),
		text("agent.model", "a model's name", &c.Agent.Model, notEmpty),
		duration("agent.timeout", time.Second, 168*time.Hour, &c.Agent.Timeout),
		text("agent.account", wantName, &c.Agent.Account, signalbox.ValidName),
		text("agent.permission_mode", "a mode of the CLI, such as acceptEdits", &c.Agent.PermissionMode, notEmpty),
		{key: "agent.tiers", want: "a section of tiers and their models", set: c.setTiers},
		{key: "agent.prices", nested: c.decodePrices},
		oneOf("agent.tools", &c.Agent.Tools, "auto", "director", "none"),
		list("agent.command", "arguments, the program first", &c.Agent.Command, func(string) bool { return true }),
		list("agent.args", "arguments", &c.Agent.Args, func(string) bool { return true }),
		paths("agent.project_roots", &c.Agent.ProjectRoots),
		list("agent.pass_env", "names of variables", &c.Agent.PassEnv, conffile.ValidEnvName),
		list("agent.task_env", "names of variables, with * for any characters, such as CALENDAR_*", &c.Agent.TaskEnv, signalbox.ValidEnvPattern),
		{key: "agent.checks", nested: decodeChecks(&c.Agent.Checks)},
		whole("agent.check_retries", 0, signalbox.MaxCheckRetries, &c.Agent.CheckRetries),
		oneOf("agent.task_checks", &c.Agent.TaskChecks, signalbox.ChecksOfAdmins, signalbox.ChecksOfEveryone),
		oneOf("agent.llm.provider", &c.Agent.LLM.Provider, "openai", "anthropic"),
		text("agent.llm.base_url", wantURL, &c.Agent.LLM.BaseURL, validURL),
		text("agent.llm.api_key", wantToken, &c.Agent.LLM.APIKey, validToken).hidden().from("SIGNALBOX_LLM_API_KEY"),
		text("agent.llm.system", "a system prompt", &c.Agent.LLM.System, notEmpty),
		whole("agent.llm.max_tokens", 1, 1_000_000, &c.Agent.LLM.MaxTokens),
		whole("agent.llm.max_turns", 1, 1000, &c.Agent.LLM.MaxTurns).from("SIGNALBOX_MAX_TURNS", "NEUROAGENT_AGENT__MAX_TURNS"),
		whole("agent.llm.max_parallel_tool_calls", 1, 1000, &c.Agent.LLM.MaxParallelToolCalls).from("SIGNALBOX_MAX_PARALLEL_TOOL_CALLS", "NEUROAGENT_AGENT__MAX_PARALLEL_TOOL_CALLS"),
		whole("agent.llm.min_parallel_tool_calls", 0, 1000, &c.Agent.LLM.MinParallelToolCalls),
		oneOf("agent.llm.over_limit", &c.Agent.LLM.OverLimit, "reject", "queue"),
		list("agent.llm.allowed_tools", "names of tools", &c.Agent.LLM.Allowed, notEmpty),
		list("agent.llm.exempt", "names of tools", &c.Agent.LLM.Exempt, notEmpty),
		list("agent.llm.approval", "names of tools", &c.Agent.LLM.Approval, notEmpty),
		text("agent.llm.tools", "a URL such as http://127.0.0.1:8080/mcp, auto, director or none", &c.Agent.LLM.Tools,
			func(s string) bool { return s == "auto" || s == "director" || s == "none" || validURL(s) }),
		duration("agent.limit_wait", time.Second, time.Hour, &c.Agent.LimitWait),
		boolean("agent.terminal", &c.Agent.Terminal),
		list("agent.terminal_command", "arguments, the program first", &c.Agent.TerminalCommand, func(string) bool { return true }),
		duration("agent.terminal_idle", 10*time.Second, day, &c.Agent.TerminalIdle),
	}
}

// agentSettings are the keys of one entry of agents.
func agentSettings(a *RemoteAgent) schema {
	return schema{
		text("name", wantName, &a.Name, signalbox.ValidName),
		text("kind", wantName, &a.Kind, signalbox.ValidName),
		text("url", wantURL, &a.URL, validURL),
		text("token", wantToken, &a.Token, validToken).hidden(),
		boolean("proof", &a.Proof),
		whole("slots", 1, signalbox.MaxAgentSlots, &a.Slots),
		text("account", wantName, &a.Account, signalbox.ValidName),
	}
}

// accountSettings are the keys of one account.
func accountSettings(a *Account) schema {
	return schema{
		whole("reserve.schedules", 1, 100, &a.ReserveSchedules),
		whole("reserve.agents", 1, 100, &a.ReserveAgents),
	}
}

// priceSettings are the keys of a model's price.
func priceSettings(p *Price) schema {
	return schema{
		decimal("input", 0, signalbox.MaxRunUSD, &p.Input),
		decimal("output", 0, signalbox.MaxRunUSD, &p.Output),
		decimal("cache_read", 0, signalbox.MaxRunUSD, &p.CacheRead),
		decimal("cache_write", 0, signalbox.MaxRunUSD, &p.CacheWrite),
	}
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)

// validDirector accepts what client.New accepts.
func validDirector(s string) bool {
	return validURL(s) || !strings.Contains(s, "://") && validURL("http://"+s)
}

func validHost(s string) bool {
	return hostForm.MatchString(s) || net.ParseIP(strings.Trim(s, "[]")) != nil
}

func validAddr(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && validPort(port, 0)
}

func validPort(s string, lo int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= lo && n <= 65535
}

func validStore(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	switch scheme {
	case "sqlite", "memory":
		return ok && !strings.HasPrefix(rest, "//")
	case "postgres", "postgresql", "redis", "rediss":
		return strings.HasPrefix(rest, "//") && len(rest) > 2
	}
	return false
}

// priority is the key for the priority of one source. Its name may differ from that
// of the source: the seeds use schedule instead of scheduler.
func priority(name string, c *Config, source signalbox.Source) setting {
	const most = 10
	return setting{key: "priorities." + name, want: conffile.WantWhole(-most, most), set: func(v value) bool {
		n, ok := v.Whole(-most, most)
		if ok && c.Priorities == nil {
			c.Priorities = map[signalbox.Source]int{}
		}
		if ok {
			c.Priorities[source] = n
		}
		return ok
	}}
}

func (c *Config) setTiers(v value) bool {
	if v.Form != conffile.Section && v.Form != conffile.Nothing {
		return false
	}
	for tier, model := range v.table {
		if !signalbox.ValidName(tier) || !notEmpty(model) {
			return false
		}
	}
	c.Agent.Tiers = v.table
	return true
}

// maxPorts limits the scan: each port is probed every second.
const maxPorts = 100

func (c *Config) setPorts(v value) bool {
	if v.Form != conffile.Text && v.Form != conffile.Number {
		return false
	}
	if v.Form == conffile.Text && (v.Text == "off" || v.Text == "") {
		c.Discover = PortRange{}
		return true
	}
	first, last, isRange := strings.Cut(v.Text, "-")
	if !isRange {
		last = first
	}
	if !validPort(first, 1) || !validPort(last, 1) {
		return false
	}
	lo, _ := strconv.Atoi(first)
	hi, _ := strconv.Atoi(last)
	if hi < lo || hi-lo >= maxPorts {
		return false
	}
	c.Discover = PortRange{lo, hi}
	return true
}
