package confine

import (
	"log/slog"
	"time"
)

// Options say how a Host is opened.
type Options struct {
	// Name is that of the control group of all boxes, the same at each start of
	// one director: what a dead predecessor left in it is killed by Open. What
	// comes before its first "-" names the program: empty groups of other dead
	// ones are removed.
	Name string
	// Method asks for one way: "auto" (or ""), "cgroup2", "rlimit".
	Method string
	// Hidden are folders that no sandbox shows, unless it names one itself or
	// what lies in it: those with the director's own store and key.
	Hidden []string
	Log    *slog.Logger

	landlock *int // the highest version of Landlock of such a machine, for tests; 0 is none
}

// Limits bound a run. 0 is no limit.
type Limits struct {
	Memory    int64         // bytes, of all its processes together (of each one with rlimits)
	CPUs      float64       // cores' worth of time; not with rlimits
	CPUTime   time.Duration // of all its processes together (of each one with rlimits)
	Processes int           // alive at one time, threads included
	FileSize  int64         // bytes, of one file
	OpenFiles int           // of one process
}

// Kinds of sandbox.
const (
	bubblewrap = "bubblewrap"
	landlocked = "landlock"
)

// Sandbox is what a run may reach. The zero Sandbox is all that the director
// may.
type Sandbox struct {
	On       bool
	Required bool     // refuse to start where there is none
	Kind     string   // "" any, bubblewrap or landlock
	Read     []string // absolute paths it may read, beyond the system's folders
	Write    []string // absolute paths it may change
	Network  bool
}

// Report says what this machine gives, for doctor and the log.
type Report struct {
	Method     string // cgroup2 or rlimit; none where there are no limits
	Detail     string // where, or why nothing better
	Limits     []LimitReport
	NoNewPrivs bool
	// Tracked says that all that lives of a run is known, whatever it does.
	Tracked bool
	// Cure is what to do where a limit is not kept, or not whole.
	Cure    string
	Sandbox []SandboxReport
}

// LimitReport says how one limit is kept.
type LimitReport struct {
	Name string // memory, cpus, cpu_time, processes, file_size, open_files
	By   string // cgroup2, rlimit, or "" where it cannot be kept
	Note string
}

// SandboxReport says whether a sandbox can be had.
type SandboxReport struct {
	Kind string // bubblewrap or landlock
	OK   bool
	Note string // version, or why not
	// Weak says what this kernel's sandbox of the kind leaves open; "" is nothing.
	Weak string
	// TooWeak says that no run gets it that requires a sandbox.
	TooWeak bool
}

// CureSandbox is what to do where a sandbox is missing or weak.
const CureSandbox = "install bubblewrap, or use a Linux whose Landlock has version 6 or later (6.12)"
