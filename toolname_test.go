package signalbox_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func TestMatchTool(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"a*", "a", true}, {"a*a", "a", false}, {"*b*", "abc", true},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false}, {"**", "x", true}, {"*bb", "bbb", true}, {"[a]", "a", false},
	} {
		if got := signalbox.MatchTool(c.pattern, c.name); got != c.want {
			t.Errorf("MatchTool(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}
