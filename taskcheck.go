package signalbox

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Check is a command that verifies the work of a task.
type Check struct {
	Name           string `json:"name"`
	Run            string `json:"run"`                       // shell command
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"` // 0: the agent's default, 600
}

// Checking says how the work of a task is checked; the zero value uses the agent's defaults.
type Checking struct {
	Checks  []Check `json:"checks,omitempty"`        // with unique names
	Retries *int    `json:"check_retries,omitempty"` // how often the conversation continues with the failed checks
}

// IsZero reports whether the agent's defaults apply.
func (c Checking) IsZero() bool { return len(c.Checks) == 0 && c.Retries == nil }

// Limits of checks.
const (
	MaxChecks       = 20
	MaxCheckRun     = 4096      // bytes of a command
	MaxCheckTimeout = 24 * 3600 // seconds
	MaxCheckRetries = 10
	MaxCheckOutput  = 8 << 10 // bytes
	maxCheckMessage = 1000    // bytes
	maxCheckName    = 64      // bytes
)

// Validate refuses checks that are not valid.
func (c Checking) Validate() error {
	if len(c.Checks) > MaxChecks {
		return Invalid("checks", "checks has %d entries; at most %d are allowed", len(c.Checks), MaxChecks)
	}
	seen := map[string]bool{}
	for _, one := range c.Checks {
		switch {
		case !ValidName(one.Name):
			return Invalid("checks", "checks: %q cannot be the name of a check: use 1 to 64 letters, digits, dots, underscores or hyphens", Clip(one.Name))
		case seen[one.Name]:
			return Invalid("checks", "checks: there are two checks %s: give each a name of its own", one.Name)
		case strings.TrimSpace(one.Run) == "":
			return Invalid("checks", "checks: check %s has no command: give it one in run", one.Name)
		case len(one.Run) > MaxCheckRun || strings.ContainsRune(one.Run, 0):
			return Invalid("checks", "checks: the command of check %s has %d bytes; at most %d are allowed, and no NUL character: call a script", one.Name, len(one.Run), MaxCheckRun)
		case one.TimeoutSeconds < 0 || one.TimeoutSeconds > MaxCheckTimeout:
			return Invalid("checks", "checks: the timeout_seconds of check %s is %d: want 1 to %d, or 0 for 600", one.Name, one.TimeoutSeconds, MaxCheckTimeout)
		}
		seen[one.Name] = true
	}
	if r := c.Retries; r != nil && (*r < 0 || *r > MaxCheckRetries) {
		return Invalid("check_retries", "check_retries is %d: want 0 to %d", *r, MaxCheckRetries)
	}
	return nil
}

// TaskChecks says from whom an agent accepts checks of a task; "" means unknown.
type TaskChecks string

// The values of TaskChecks.
const (
	ChecksOfAdmins   TaskChecks = "admins" // the default
	ChecksOfEveryone TaskChecks = "everyone"
)

// MayBringChecks refuses checks of a task if its agent accepts them only from admins.
func (p Principal) MayBringChecks(agent string, from TaskChecks, list []Check) error {
	if len(list) == 0 || from != ChecksOfAdmins || p.Has(ScopeAdmin) {
		return nil
	}
	return Invalid("checks", "agent %s does not take checks from %s, because they are commands for its host: who runs the agent allows them with agent.task_checks, and an admin may bring any", agent, p.String())
}

// CheckState is the outcome of a check.
type CheckState string

// The outcomes of a check.
const (
	CheckPassed      CheckState = "passed"
	CheckFailed      CheckState = "failed"
	CheckTimeout     CheckState = "timeout"     // it did not end in time
	CheckUnavailable CheckState = "unavailable" // it could not be run
)

// Checked is the outcome of the checks of a run, as reported by its agent.
type Checked struct {
	State   CheckState    `json:"state"` // never CheckTimeout
	Results []CheckResult `json:"results,omitempty"`
	Rounds  int           `json:"rounds"`            // how often they ran
	Message string        `json:"message,omitempty"` // why the work was not checked
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	Name     string     `json:"name"`
	State    CheckState `json:"state"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Seconds  float64    `json:"seconds"`
	Output   string     `json:"output,omitempty"` // the end of its output, at most MaxCheckOutput bytes
}

// Size returns about how many bytes it takes in a store.
func (c *Checked) Size() int64 {
	if c == nil {
		return 0
	}
	n := len(c.Message)
	for i := range c.Results {
		n += len(c.Results[i].Output) + len(c.Results[i].Name)
	}
	return int64(n)
}

// Summary returns a copy without the output of the checks; nil for nil.
func (c *Checked) Summary() *Checked {
	if c == nil {
		return nil
	}
	s := *c
	s.Results = slices.Clone(c.Results)
	for i := range s.Results {
		s.Results[i].Output = ""
	}
	return &s
}

// Sanitize replaces or drops what a correct agent never reports: unknown states, negative
// figures, and texts that are too long or contain control characters.
func (c *Checked) Sanitize() {
	if len(c.Results) > MaxChecks {
		c.Results = c.Results[:MaxChecks:MaxChecks]
	}
	if c.State != CheckPassed && c.State != CheckFailed {
		c.State = CheckUnavailable
	}
	c.Rounds = int(figure(int64(c.Rounds)))
	c.Message = printable(c.Message, maxCheckMessage)
	for i := range c.Results {
		r := &c.Results[i]
		r.Name = printable(r.Name, maxCheckName)
		if !(r.Seconds >= 0 && r.Seconds <= maxChanged) { // false for NaN
			r.Seconds = 0
		}
		switch r.State {
		case CheckPassed, CheckFailed, CheckTimeout, CheckUnavailable:
		default:
			r.State = CheckUnavailable
		}
		lines := strings.Split(lastBytes(r.Output, MaxCheckOutput), "\n")
		for i := range lines {
			lines[i] = printable(lines[i], MaxCheckOutput)
		}
		r.Output = lastBytes(strings.Join(lines, "\n"), MaxCheckOutput)
	}
}

// lastBytes returns the end of s, at most n bytes, from a rune boundary.
func lastBytes(s string, n int) string {
	at := max(0, len(s)-n)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
