package signalbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// InvalidIf returns a validation error if bad is true, else nil.
func InvalidIf(bad bool, field, format string, numbers ...int) error {
	if !bad {
		return nil
	}
	args := make([]any, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	return Invalid(field, format, args...)
}

// CheckSize refuses a value of more than most bytes. The message begins with what.
func CheckSize(field, what string, size, most int) error {
	if size <= most {
		return nil
	}
	return &Error{Code: CodeTooLarge, Field: field, Message: fmt.Sprintf("%s %d bytes; at most %d are allowed", what, size, most)}
}

// CheckObject refuses raw unless it is empty or a JSON object of at most most bytes.
func CheckObject(field string, raw json.RawMessage, most int) error {
	switch {
	case len(raw) > most:
		return CheckSize(field, field+" has", len(raw), most)
	case len(raw) > 0 && (raw[0] != '{' || !json.Valid(raw)):
		return Invalid(field, "%s must be a JSON object such as {\"name\": \"value\"}", field)
	case !utf8.Valid(raw):
		return Invalid(field, "%s is not valid UTF-8", field)
	}
	return nil
}

// Limits of the environment of a task.
const (
	MaxEnvEntries = 100
	MaxEnvBytes   = 64 << 10
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidEnvName reports whether name can name an environment variable of a task.
func ValidEnvName(name string) bool { return len(name) <= 128 && envName.MatchString(name) }

// CheckEnv refuses an environment with invalid names or values, too many entries or too many
// bytes.
func CheckEnv(env map[string]string) error {
	if len(env) > MaxEnvEntries {
		return Invalid("env", "env has %d entries; at most %d are allowed", len(env), MaxEnvEntries)
	}
	size := 0
	for key, value := range env {
		size += len(key) + len(value)
		if !ValidEnvName(key) {
			return Invalid("env", "env: %q cannot be the name of an environment variable: use 1 to 128 letters, digits or underscores, the first not a digit", Clip(key))
		}
		if strings.ContainsRune(value, 0) {
			return Invalid("env", "env: the value of %s contains a NUL character", key)
		}
	}
	if size > MaxEnvBytes {
		return Invalid("env", "env has %d bytes; at most %d are allowed", size, MaxEnvBytes)
	}
	return nil
}

// RefuseExecutor returns the error for addressing the director's own executor as an agent; nil
// for any other name.
func RefuseExecutor(name string) error {
	kind, ok := ExecutorKind(name)
	if !ok {
		return nil
	}
	return &Error{Code: CodeUnsupported, Field: "agent", Message: fmt.Sprintf(
		"%s is the director's own executor of tool calls and no agent: call a tool as a task to give it work, cancel a task to take it away (signalbox cancel ID), or pause the queue %s", Clip(name), kind)}
}

// CheckAgent refuses an invalid agent or token. It normalizes the agent's address.
func CheckAgent(a *Agent, token string) error {
	badAddress := checkAddress(a)
	return cmp.Or(
		RefuseExecutor(a.Name),
		CheckName("name", "the name of an agent", a.Name),
		CheckName("kind", "a kind of agent", a.Kind),
		badAddress,
		CheckRange("slots", a.Slots, 1, MaxAgentSlots),
		CheckText("version", a.Version, MaxWordBytes),
		CheckText("work_dir", a.WorkDir, MaxPathBytes),
		InvalidIf(len(token) > MaxPathBytes || !Printable(token), "token", "token must be printable and at most %d bytes: it goes into a header", MaxPathBytes),
	)
}

// checkAddress validates and normalizes an agent's URL, or the instance of a pull agent.
func checkAddress(a *Agent) error {
	if a.Source == AgentPull {
		if instance, ok := PullInstance(a.URL); !ok || !ValidInstance(instance) {
			return Invalid("instance", "%q cannot be the instance of an agent that pulls: want 8 to 64 letters, digits or hyphens", instance)
		}
		return nil
	}
	base, ok := AgentURL(a.URL)
	if !ok {
		return Invalid("url", "%q is not the address of an agent: want http://HOST:PORT, with no path, query, fragment or user", Clip(a.URL))
	}
	a.URL = base
	return nil
}
