package signalbox

import (
	"maps"
	"path"
	"regexp"
	"slices"
)

// EnvBy says who gave a task its environment.
type EnvBy string

// Who may have given it. Others than admins may set only the names that the
// configuration of the agent allows.
const (
	EnvByAdmin  EnvBy = "admin"  // the owner of the director, or an admin
	EnvByCaller EnvBy = "caller" // anybody else
)

var envPattern = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_*]{0,127}$`)

// ValidEnvPattern reports whether pattern can name variables: a name in which *
// stands for any characters, such as CALENDAR_*.
func ValidEnvPattern(pattern string) bool { return envPattern.MatchString(pattern) }

// EnvNotAllowed returns the first name of an environment, in order, that no
// pattern allows; "" if all are allowed.
func EnvNotAllowed(patterns []string, env map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return ok && err == nil && ValidEnvPattern(p)
		}) {
			return name
		}
	}
	return ""
}
