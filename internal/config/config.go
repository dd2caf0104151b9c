package config

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Config is the whole configuration. Load fills in the defaults given here.
type Config struct {
	File string // the file that was read; "": none

	// Director is the director's URL, for the client commands and the agent role.
	// "": not set.
	Director string
	// Token is the bearer token that the director requires and that clients send.
	// "": none.
	Token string
	// TokenFile is the absolute path from which Token was read; "": none.
	TokenFile string
	// Open makes the director create no token of its own: if no token is
	// configured and no admin exists, every client has all rights. Default false.
	Open bool

	Addr  string // host:port on which the director listens; default 127.0.0.1:8080
	Data  string // absolute folder of store, keys and logs; default data in Home
	Store string // sqlite:[FILE], postgres://…, redis://… or memory:; default sqlite:, a file in Data
	// Instance names this director among those over its store; "" (default):
	// host-port. Advertise is the address at which the others reach it; ""
	// (default): the address on which it listens.
	Instance, Advertise string

	Hosts []string // accepted Host header names besides the loopback ones; default none
	Log   Log
	Queue Queue

	Bypass        Bypass
	LandingRounds int // how often a conversation gets work back that does not land
	// Priorities is the priority, -10 to 10, by source, of tasks that set none;
	// default none, which is 0 for all.
	Priorities map[signalbox.Source]int

	ExecutionTTL time.Duration // an execution ends after this time without contact to its agent, or without progress if the agent reports progress, 1s to 24h; default 600s
	StallLimit   time.Duration // a run without progress for this long is stopped, 1s to 168h; 0: never; default signalbox.StallByProgress
	RunGrace     time.Duration // a run that exceeds its timeout by this much is stopped, 1s to 1h; default 30s
	Terminal     bool          // the director opens terminals of its agents; default false
	SessionGrace time.Duration // how long the tasks of a session wait for their lost agent, 0 to 24h; default 60s
	Grace        time.Duration // how long a shutdown waits for running tasks, 0 to 24h; default 30s
	OnShutdown   string        // what a shutdown does with tasks that still run: leave (default) or stop

	Scheduler Scheduler
	// Jobs are the schedules in the file; default none.
	Jobs []Job

	// Tools are the tools behind the gateway, from the file's own keys and from
	// the files named by its key tools and the flag --tools; default none.
	Tools     toolconf.Config
	ToolFiles []string // these files, absolute; default none
	Commands  Commands
	// SeedMetrics also exports the tool queues' metrics under the names of the
	// seed tool-queue-manager; default false.
	SeedMetrics bool

	Accounts  map[string]Account            // by name; default none
	Resources map[string]signalbox.Resource // resources that tasks may need
	Budgets   signalbox.Budgets             // spending limits; default none
	Agents    []RemoteAgent                 // agents that the director polls; default none
	Kinds     []string                      // kinds of agents that have options of their own, see For; default none
	Discover  PortRange                     // loopback ports on which the director looks for agents; default none
	Agent     Agent

	origins map[string]string
	kinds   map[string]func(*Config) Problems // applies the options of a kind
	sources Sources                           // where it was loaded from
	read    os.FileInfo                       // of File, before it was read
	confirm func() error                      // asks whether File counts, while it is loaded; nil: it counts
}

// Log configures the log of a server.
type Log struct {
	Format string // text (default) or json
	Level  string // debug, verbose, info (default), warn or error
}

// Queue has the rules of the queue.
type Queue struct {
	MaxSize         int              // maximum number of waiting tasks, 1 to 1000000; default 50
	ChatMaxSize     int              // maximum number of waiting chats per agent, 1 to 10000; default 3
	WaitTimeout     time.Duration    // how long a chat waits for its turn unless it says otherwise, 1s to 720h; default 120s
	Fleet           int              // maximum number of concurrent executions of all agents, without the bypass, 0 to 1000000; 0 (default): no limit
	MaxAttempts     int              // failed dispatches after which a task fails, 1 to 1000; default 3
	OnLost          signalbox.OnLost // what happens to a task whose agent is lost, unless the task says so: fail (default) or requeue
	DispatchTimeout time.Duration    // how long an agent may take to accept a task, 1ms to 1h; default 30s
	AgeStep         time.Duration    // waiting time that equals one step of priority, 0 to 24h; default 60s
	Retention       time.Duration    // how long ended tasks stay readable, 1m to 10 years; default 168h
	SubmitTasks     int              // tasks that one caller without the scope admin may submit per minute, 0 to 1000000; 0: no limit; default 1000
	// RetentionBytes limits the size of ended tasks that are kept within
	// Retention, and CallerRetentionBytes that of one caller's; 0 or 1 MiB to 1
	// PiB; 0: no limit; defaults 8 GiB and 1 GiB.
	RetentionBytes, CallerRetentionBytes int
	SubmitBytes                          int // the same for the bytes of their prompts, arguments and env, 0 to 1 TiB; 0: no limit; default 16 MiB
}

// Bypass limits the executions outside the queue.
type Bypass struct {
	Slots int // per agent, 0 to 10000; 0 (default): as many as it offers
	Fleet int // of all agents, 1 to 1000000; default 16
}

// Scheduler configures how schedules run.
type Scheduler struct {
	Enabled  bool   // in the director; default true
	Timezone string // IANA name, for schedules that set none; default UTC
	Addr     string // host:port on which signalbox scheduler listens; default 127.0.0.1:9100
	Token    string // required from its clients; "" (default): none
}

// Job is a schedule in the file (seed work-queue): what to submit and when.
type Job struct {
	signalbox.Schedule     // without ID, times and cursor; Enabled is as in the file
	Line               int // in the file, for messages
}

// Account configures how an account is shared.
type Account struct {
	// ReserveSchedules and ReserveAgents reserve the rest of the account for people: at
	// or above this use of its fullest window, in percent, 1 to 100, no task of a schedule, or of an
	// agent, is claimed. 0 (default): no reserve.
	ReserveSchedules, ReserveAgents int
}

// RemoteAgent is an agent elsewhere that the director calls.
type RemoteAgent struct {
	Name    string // 1 to 64 letters, digits, dots, underscores or hyphens; required
	Kind    string // default: what the agent reports
	URL     string // http(s)://host:port; required
	Token   string // required by the agent; "": none
	Proof   bool   // it proves on each connection that it knows Token, as signalbox agent does; default: what it reports
	Slots   int    // concurrent executions, 1 to 10000; 0 (default): what the agent reports
	Account string // account that its runs use; "" (default): what the agent reports
}

// Agent has the options of Signalbox's own agents: of signalbox agent, and of
// the child processes that signalbox up starts.
type Agent struct {
	Name           string               // default: the kind
	Kind           string               // claude, codex, opencode, command, llm or demo; default: the coding CLI found on PATH
	Addr           string               // host:port on which it listens; default 127.0.0.1:9000
	Token          string               // required from clients of the agent; "": none
	Pull           bool                 // it does not listen, but asks its director for tasks; default false
	Directors      []string             // URLs of further directors over the same store, for a pulling agent
	WorkDir        string               // absolute folder in which tasks run; "" (default): the current one
	Workspace      Workspace            // folder in which each task works
	Landing        Landing              // how the work of worktrees lands
	Home           string               // absolute HOME of the coding CLI; "" (default): the user's
	Slots          int                  // concurrent executions, 1 to 64; default 1
	IsolatedSlots  int                  // concurrent isolated executions besides them, for the bypass, 1 to 64; default 4
	Model          string               // for tasks that set none; "" (default): the CLI's own
	Timeout        time.Duration        // for tasks that set none, 1s to 168h; default 30m
	Account        string               // account that its runs use; "" (default): one for each kind and login
	PermissionMode string               // what the CLI may do without asking; "" (default): the runner's own, the safest
	Tools          string               // whether the CLI gets the director's tools: auto (default; if there are any), director or none
	Tiers          map[string]string    // tier → model; default: the runner's own
	Prices         map[string]Price     // of models, by name, with * for any characters; default: none
	Command        []string             // argument template of kind command
	LLM            LLM                  // options of kind llm
	Args           []string             // additional arguments for the CLI
	ProjectRoots   []string             // absolute folders that must contain a task's project; default: WorkDir
	PassEnv        []string             // names of variables passed on to the CLI besides the usual ones
	TaskEnv        []string             // names of variables that tasks of non-admins may set, with * for any characters
	Checks         []signalbox.Check    // commands that check the work of a run; default: those of the repository
	CheckRetries   int                  // how often the conversation continues with the output of failed checks, 0 to 10; default 2
	TaskChecks     signalbox.TaskChecks // whose tasks may bring checks; default: admins' tasks

	Terminal        bool          // it offers terminals; default false
	TerminalCommand []string      // program of a terminal; default: the CLI, or the user's shell for the kinds command and demo
	LimitWait       time.Duration // how long a CLI may wait by itself at a limit of its provider before its run is ended; 1s to 1h; default 20s
	TerminalIdle    time.Duration // how long a terminal may be without input and output, 10s to 24h; default 15m
}

// Workspace configures where tasks work.
type Workspace struct {
	Kind  string   // folder (default): in the working folder; worktree: in a git worktree for each conversation; clone: in a worktree of a mirror of Repo
	Repo  string   // URL of the repository for clones; required if Kind is clone
	Repos []string // patterns of URLs that tasks may name; nil (default): Repo, and the origin of the working folder
	Base  string   // branch, tag or commit from which worktrees are made; "" (default): what is checked out in the working folder, or the remote's HEAD
	Setup []string // shell commands that run in a new worktree
	Carry []string // patterns of ignored files that are copied into a new worktree
	// MaxBytes limits the disk space of worktrees and mirrors; 0 (default): no limit. MinFree
	// is the disk space that must stay free; default 1 GiB, 0: none.
	MaxBytes, MinFree int64
}

// Landing configures how the work of worktrees lands on a branch.
type Landing struct {
	Method      string // rebase (default): every commit of the work; squash: one commit
	FastForward bool   // a clean checkout of the branch is fast-forwarded; default false
	Hooks       bool   // the repository's hooks run; default false
}

// Price is what a model costs, in US dollars for 1,000,000 tokens, each from 0 to 1,000,000.
type Price struct {
	Input, Output         float64 // both required
	CacheRead, CacheWrite float64 // for input that the provider's cache supplied or stored; default: Input
}

// LLM has the options of an agent of kind llm: Signalbox's own loop around a
// model, with the tools of a gateway.
type LLM struct {
	Provider  string   // openai (default; any endpoint with its chat completions API) or anthropic
	BaseURL   string   // "" (default): the vendor's
	APIKey    string   // "" (default): OPENAI_API_KEY or ANTHROPIC_API_KEY
	System    string   // system prompt; default none
	MaxTokens int      // of one turn, 1 to 1000000; default 8192
	MaxTurns  int      // 1 to 1000; default 10
	Tools     string   // URL of an MCP endpoint; director: the director's tools; auto (default): those, if there are any; none
	Allowed   []string // the only tools it has, where a * at the end stands for any rest; default all
	Exempt    []string // tools that the limit does not count; default none
	Approval  []string // tools that need a person's approval and are therefore refused; default none

	MaxParallelToolCalls int    // tool calls of one step, 1 to 1000; default 10
	MinParallelToolCalls int    // minimum to which the limit falls as the load of the machine rises, 1 to 1000; 0 (default): the limit is fixed
	OverLimit            string // what happens to calls above the limit: reject (default) or queue
}

// PortRange is a range of TCP ports. The zero value is none.
type PortRange struct{ First, Last int }

// Origin says where the value of a key, such as queue.max_size, comes from:
// file:line, the name of a variable, a flag, or "default".
func (c *Config) Origin(key string) string {
	if from, ok := c.origins[key]; ok {
		return from
	}
	return "default"
}

// Default returns the configuration without any settings. Data is empty if
// home is.
func Default(home string) Config {
	c := Config{
		Addr:  "127.0.0.1:8080",
		Store: "sqlite:",
		Log:   Log{Format: "text", Level: "info"},
		Queue: Queue{
			MaxSize: 50, ChatMaxSize: 3, WaitTimeout: 120 * time.Second, MaxAttempts: 3, OnLost: signalbox.LostFail,
			DispatchTimeout: 30 * time.Second, AgeStep: time.Minute, Retention: 168 * time.Hour,
			SubmitTasks: 1000, SubmitBytes: 16 << 20,
			RetentionBytes: 8 << 30, CallerRetentionBytes: 1 << 30,
		},
		Bypass:        Bypass{Fleet: 16},
		LandingRounds: 2,
		ExecutionTTL:  600 * time.Second,
		StallLimit:    signalbox.StallByProgress,
		RunGrace:      30 * time.Second,
		Scheduler:     Scheduler{Enabled: true, Timezone: "UTC", Addr: "127.0.0.1:9100"},
		Commands:      Commands{Limits: "auto", TaskAfter: 5 * time.Second},
		SessionGrace:  time.Minute,
		Grace:         30 * time.Second,
		OnShutdown:    "leave",
		Agent: Agent{Addr: "127.0.0.1:9000", Slots: 1, IsolatedSlots: 4, Workspace: Workspace{MinFree: 1 << 30}, Timeout: 30 * time.Minute, LimitWait: 20 * time.Second, TerminalIdle: 15 * time.Minute, Tools: "auto", CheckRetries: 2, TaskChecks: signalbox.ChecksOfAdmins,
			LLM: LLM{Provider: "openai", MaxTokens: 8192, MaxTurns: 10, MaxParallelToolCalls: 10, OverLimit: "reject", Tools: "auto"}},
		origins: map[string]string{},
	}
	if home != "" {
		c.Data = filepath.Join(home, "data")
	}
	return c
}

// Commands configures how async command tools and other tool tasks run.
type Commands struct {
	MaxConcurrent int           // maximum number of concurrent runs, 1 to 10000; 0 (default): as in the tool files, else 10
	MaxWaiting    int           // maximum number of waiting ones, 0 to 1000000; 0 (default): no limit
	AgentName     string        // metadata.agent of results; default the tool's name
	Limits        string        // how child processes are limited: auto (default), cgroup2 or rlimit
	TaskAfter     time.Duration // how long a call waits in its tool queue before it becomes a task, for MCP clients that declared tasks, 0 to 1h; default 5s
}

// Problem is one mistake in a configuration.
type Problem = conffile.Problem

// Problems are all the mistakes, in the order in which they were found.
type Problems = conffile.Problems

// SecretVariables returns the environment variables with secret settings
// whose keys begin with prefix, such as "agent."; "" for all.
func SecretVariables(prefix string) (names []string) {
	for _, x := range settings(new(Config)) {
		if x.secret && strings.HasPrefix(x.key, prefix) {
			names = append(names, x.env...)
		}
	}
	return names
}
