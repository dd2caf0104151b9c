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

	// Director is the director's URL for those who call one: the client
	// commands and the agent role. "": not set.
	Director string
	// Token is the bearer token that the director asks for, and that callers
	// present. "": none.
	Token string
	// TokenFile is an absolute path from which Token was read; "": none.
	TokenFile string
	// Open has the director make no token of its own: where none is given and no
	// admin was made, whoever reaches it has every right. Default false.
	Open bool

	Addr  string // host:port on which the director listens; default 127.0.0.1:8080
	Data  string // absolute folder of store, keys and logs; default data in Home
	Store string // sqlite:[FILE], postgres://…, redis://… or memory:; default sqlite:, a file in Data
	// Instance names this director among those over its store; "" (default):
	// host-port. Advertise is where the others reach it; "" (default): the
	// address on which it listens.
	Instance, Advertise string

	Hosts []string // names in the Host header that are accepted beside the loopback ones; default none
	Log   Log
	Queue Queue

	Bypass        Bypass
	LandingRounds int // how often a conversation gets back what does not land
	// Priorities is the priority, -10 to 10, of tasks that give none, by their
	// source; default none, which is 0 for all.
	Priorities map[signalbox.Source]int

	ExecutionTTL time.Duration // silence of an agent, or time without progress of a run whose agent reports it, after which the execution is ended, 1s to 24h; default 600s
	StallLimit   time.Duration // a run that makes no progress for that long is stopped, 1s to 168h; 0: never; default signalbox.StallByProgress
	RunGrace     time.Duration // a run that outstays its timeout by that much is stopped, 1s to 1h; default 30s
	Terminal     bool          // the director opens terminals of its agents; default false
	SessionGrace time.Duration // how long the tasks of a session wait for its lost agent, 0 to 24h; default 60s
	Grace        time.Duration // what a stop waits for running tasks, 0 to 24h; default 30s
	OnShutdown   string        // what a stop does with tasks that still run: leave (default) or stop

	Scheduler Scheduler
	// Jobs are the schedules of the file; default none.
	Jobs []Job

	// Tools are the tools behind the gateway, of the file's own keys and of the
	// files that its key tools and the flag --tools name; default none.
	Tools     toolconf.Config
	ToolFiles []string // those files, absolute; default none
	Commands  Commands
	// SeedMetrics exports the tool queues' metrics under the names of the seed
	// tool-queue-manager too; default false.
	SeedMetrics bool

	Accounts  map[string]Account            // by name; default none
	Resources map[string]signalbox.Resource // that tasks may need
	Budgets   signalbox.Budgets             // what may be spent; default no bounds
	Agents    []RemoteAgent                 // agents that the director polls; default none
	Kinds     []string                      // kinds of agents that have options of their own, see For; default none
	Discover  PortRange                     // loopback ports on which the director looks for agents; default none
	Agent     Agent

	origins map[string]string
	kinds   map[string]func(*Config) Problems // applies the options of a kind
	sources Sources                           // that it was loaded from
	read    os.FileInfo                       // of File, before it was read
	confirm func() error                      // whether File counts, while it is loaded; nil: it does
}

// Log says how a server writes its log.
type Log struct {
	Format string // text (default) or json
	Level  string // debug, verbose, info (default), warn or error
}

// Queue holds the rules of the queue.
type Queue struct {
	MaxSize         int              // tasks that may wait, 1 to 1000000; default 50
	ChatMaxSize     int              // chats that may wait for one agent, 1 to 10000; default 3
	WaitTimeout     time.Duration    // what a chat that gives none waits for its turn, 1s to 720h; default 120s
	Fleet           int              // executions of all agents side by side, the bypass apart, 0 to 1000000; 0 (default): no ceiling
	MaxAttempts     int              // failed dispatches after which a task fails, 1 to 1000; default 3
	OnLost          signalbox.OnLost // what becomes of a task that says nothing of it when its agent is lost: fail (default) or requeue
	DispatchTimeout time.Duration    // how long an agent may take to accept a task, 1ms to 1h; default 30s
	AgeStep         time.Duration    // waiting time that one step of priority is worth, 0 to 24h; default 60s
	Retention       time.Duration    // how long ended tasks stay readable, 1m to 10 years; default 168h
	SubmitTasks     int              // tasks that one caller without the right admin may submit in a minute, 0 to 1000000; 0: any number; default 1000
	// RetentionBytes bounds what is kept of ended tasks before Retention is over,
	// CallerRetentionBytes that of one caller; 0 or 1 MiB to 1 PiB; 0: any number;
	// defaults 8 GiB and 1 GiB.
	RetentionBytes, CallerRetentionBytes int
	SubmitBytes                          int // and bytes of their prompts, arguments and env, 0 to 1 TiB; 0: any number; default 16 MiB
}

// Bypass bounds the executions beside the queue.
type Bypass struct {
	Slots int // of one agent, 0 to 10000; 0 (default): as many as it offers
	Fleet int // of all agents, 1 to 1000000; default 16
}

// Scheduler says how schedules are run.
type Scheduler struct {
	Enabled  bool   // in the director; default true
	Timezone string // IANA name, of schedules that give none; default UTC
	Addr     string // host:port on which signalbox scheduler listens; default 127.0.0.1:9100
	Token    string // that callers of it must present; "" (default): none
}

// Job is a schedule of the file (seed work-queue): what is to be submitted
// when.
type Job struct {
	signalbox.Schedule     // without ID, times and cursor; Enabled is what the file says
	Line               int // in the file, for messages
}

// Account says how an account is shared.
type Account struct {
	// ReserveSchedules and ReserveAgents keep the rest of it for people: from that use of its
	// fullest window on, in percent, 1 to 100, no task of a schedule, or of an agent, is
	// claimed. 0 (default): they go on to the limit.
	ReserveSchedules, ReserveAgents int
}

// RemoteAgent is an agent elsewhere, which the director calls.
type RemoteAgent struct {
	Name    string // 1 to 64 letters, digits, dots, underscores or hyphens; required
	Kind    string // default: what the agent says
	URL     string // http(s)://host:port; required
	Token   string // that the agent asks for; "": none
	Proof   bool   // it proves on each connection that it knows Token, as signalbox agent does; default: what it says
	Slots   int    // executions side by side, 1 to 10000; 0 (default): what the agent says
	Account string // that its runs spend; "" (default): what the agent says
}

// Agent holds the options of an agent of our own: of signalbox agent, and of
// the children that signalbox up starts.
type Agent struct {
	Name           string               // default: the kind
	Kind           string               // claude, codex, opencode, command, llm or demo; default: the coding CLI found on PATH
	Addr           string               // host:port on which it listens; default 127.0.0.1:9000
	Token          string               // that callers of the agent must present; "": none
	Pull           bool                 // it listens nowhere and asks its director for tasks; default false
	Directors      []string             // URLs of further directors over the same store, of an agent that pulls
	WorkDir        string               // absolute folder in which tasks run; "" (default): the current one
	Workspace      Workspace            // where in it, or beside it, each task works
	Landing        Landing              // how the work of worktrees lands
	Home           string               // absolute HOME of the coding CLI; "" (default): the user's
	Slots          int                  // executions side by side, 1 to 64; default 1
	IsolatedSlots  int                  // isolated executions beside them, for the bypass, 1 to 64; default 4
	Model          string               // for tasks that name none; "" (default): the CLI's own
	Timeout        time.Duration        // of tasks that give none, 1s to 168h; default 30m
	Account        string               // that its runs spend; "" (default): one for each kind and login
	PermissionMode string               // what the CLI may do unasked; "" (default): the runner's own, the safest
	Tools          string               // whether the CLI gets the director's tools: auto (default; where it has any), director or none
	Tiers          map[string]string    // tier → model; default: the runner's own
	Prices         map[string]Price     // of models, by name, with * for any characters; default: none
	Command        []string             // argument template of kind command
	LLM            LLM                  // options of kind llm
	Args           []string             // further arguments for the CLI
	ProjectRoots   []string             // absolute folders in which a task's project must lie; default: WorkDir
	PassEnv        []string             // names of variables to pass on to the CLI beside the usual ones
	TaskEnv        []string             // names of variables that tasks of others than admins may set, with * for any characters
	Checks         []signalbox.Check    // commands that say whether the work of a run is good; default: those of the repository
	CheckRetries   int                  // how often the conversation goes on with what checks that failed printed, 0 to 10; default 2
	TaskChecks     signalbox.TaskChecks // from whom it takes checks of a task; default: from admins

	Terminal        bool          // it offers terminals; default false
	TerminalCommand []string      // what runs in them; default: the CLI, or the user's shell for the kinds command and demo
	LimitWait       time.Duration // for which a CLI may wait by itself at a limit of its provider; where it would wait longer its run is ended; 1s to 1h; default 20s
	TerminalIdle    time.Duration // without input or output a terminal ends after that long, 10s to 24h; default 15m
}

// Workspace holds where tasks work.
type Workspace struct {
	Kind  string   // folder (default): in the working folder; worktree: in a git worktree for each conversation; clone: in one of a mirror of Repo
	Repo  string   // address of the repository of clones; required where Kind is clone
	Repos []string // patterns of addresses that tasks may name; nil (default): Repo, and the origin of the working folder
	Base  string   // branch, tag or commit that worktrees are made from; "" (default): what is checked out in the working folder, or is the HEAD of the remote
	Setup []string // shell commands that run in a new worktree
	Carry []string // patterns of files that git ignores, which are copied into a new worktree
	// MaxBytes bounds what worktrees and mirrors take on the disk; 0 (default): nothing does.
	// MinFree is what stays free there; default 1 GiB, 0: nothing.
	MaxBytes, MinFree int64
}

// Landing holds how the work of worktrees lands on a branch.
type Landing struct {
	Method      string // rebase (default): each commit of the work; squash: one commit
	FastForward bool   // a clean checkout of the branch goes forward with it; default false
	Hooks       bool   // the hooks of the repository run; default false
}

// Price is what a model costs, in US dollars for 1,000,000 tokens, each from 0 to 1,000,000.
type Price struct {
	Input, Output         float64 // both required
	CacheRead, CacheWrite float64 // of input that the provider's cache had, or took in; default: Input
}

// LLM holds the options of an agent of kind llm: a loop of our own around a
// model, with the tools of a gateway.
type LLM struct {
	Provider  string   // openai (default; any endpoint that speaks its chat completions) or anthropic
	BaseURL   string   // "" (default): the vendor's
	APIKey    string   // "" (default): OPENAI_API_KEY or ANTHROPIC_API_KEY
	System    string   // system prompt; default none
	MaxTokens int      // of one turn, 1 to 1000000; default 8192
	MaxTurns  int      // 1 to 1000; default 10
	Tools     string   // URL of an MCP endpoint, director: the director's, auto (default): those if it has any, or none
	Allowed   []string // the only tools it has, where * at the end stands for any rest; default all
	Exempt    []string // tools that the limit does not count; default none
	Approval  []string // tools that need a person's approval, so that they are not run; default none

	MaxParallelToolCalls int    // tool calls of one step, 1 to 1000; default 10
	MinParallelToolCalls int    // to which that falls as the load of the machine rises, 1 to 1000; 0 (default): it does not
	OverLimit            string // what becomes of those beyond: reject (default) or queue
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

// Default returns the configuration of someone who set nothing. Data is
// empty where home is.
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

// Commands is how async command tools and other tool tasks are run.
type Commands struct {
	MaxConcurrent int           // side by side, 1 to 10000; 0 (default): as the tool files say, else 10
	MaxWaiting    int           // that may wait, 0 to 1000000; 0 (default): any number
	AgentName     string        // metadata.agent of results; default the tool's name
	Limits        string        // how children are bounded: auto (default), cgroup2 or rlimit
	TaskAfter     time.Duration // how long a call waits in its tool queue before it becomes a task, for MCP clients that declared tasks, 0 to 1h; default 5s
}

// Problem is one thing that is wrong with a configuration.
type Problem = conffile.Problem

// Problems are all the things that are wrong, in the order in which they
// were met.
type Problems = conffile.Problems

// SecretVariables returns the environment variables that hold secret settings
// whose keys begin with prefix, such as "agent."; "" for all.
func SecretVariables(prefix string) (names []string) {
	for _, x := range settings(new(Config)) {
		if x.secret && strings.HasPrefix(x.key, prefix) {
			names = append(names, x.env...)
		}
	}
	return names
}
