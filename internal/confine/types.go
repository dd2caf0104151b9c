package confine

import (
	"log/slog"
	"time"
)

// Options configure a Host.
type Options struct {
	// Name is the name of the control group of all boxes, the same at each start
	// of one director: Open kills what a dead predecessor left in it. The part
	// before the first "-" names the program: empty groups of other dead
	// processes of the program are removed.
	Name string
	// Method selects the method: "auto" (or ""), "cgroup2", "rlimit".
	Method string
	// Hidden are folders that no sandbox shows, unless it names one itself or
	// something in it: those with the director's own store and key.
	Hidden []string
	Log    *slog.Logger

	landlock *int // highest version of Landlock of the simulated machine, for tests; 0 is none
}

// Limits limit a run. 0 is no limit.
type Limits struct {
	Memory    int64         // bytes, of all its processes together (of each one with rlimits)
	CPUs      float64       // CPU cores; not with rlimits
	CPUTime   time.Duration // of all its processes together (of each one with rlimits)
	Processes int           // alive at the same time, including threads
	FileSize  int64         // bytes of one file
	OpenFiles int           // of one process
}

// The kinds of sandboxes.
const (
	bubblewrap = "bubblewrap"
	landlocked = "landlock"
)

// Sandbox is what a run may access. The zero Sandbox allows everything that
// the director may do.
type Sandbox struct {
	On       bool
	Required bool     // refuse to start without a sandbox
	Kind     string   // "" any, bubblewrap or landlock
	Read     []string // absolute paths it may read, beyond the system's folders
	Write    []string // absolute paths it may change
	Network  bool
}

// Report says what this machine supports, for doctor and the log.
type Report struct {
	Method     string // cgroup2 or rlimit; none if there are no limits
	Detail     string // the place, or why nothing better is available
	Limits     []LimitReport
	NoNewPrivs bool
	// Tracked says that all living processes of a run are known, whatever they
	// do.
	Tracked bool
	// Cure is what to do if a limit is not or only partly enforced.
	Cure    string
	Sandbox []SandboxReport
}

// LimitReport says how a limit is enforced.
type LimitReport struct {
	Name string // memory, cpus, cpu_time, processes, file_size, open_files
	By   string // cgroup2, rlimit, or "" if it cannot be enforced
	Note string
}

// SandboxReport says whether a sandbox is available.
type SandboxReport struct {
	Kind string // bubblewrap or landlock
	OK   bool
	Note string // version, or the reason
	// Weak says what the sandbox does not cover on this kernel; "" is nothing.
	Weak string
	// TooWeak says that runs that require a sandbox do not get this one.
	TooWeak bool
}

// CureSandbox is what to do if a sandbox is missing or weak.
const CureSandbox = "install bubblewrap, or use a Linux whose Landlock has version 6 or later (6.12)"
