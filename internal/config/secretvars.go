package config

import "strings"

// SecretVariables returns the environment variables that hold secret settings
// whose keys begin with prefix, such as "agent."; "" for all.
func SecretVariables(prefix string) (names []string) {
	for _, x := range settings {
		if x.secret && strings.HasPrefix(x.key, prefix) {
			names = append(names, x.env...)
		}
	}
	return names
}
