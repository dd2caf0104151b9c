package signalbox

import "strings"

// MatchTool reports whether a pattern names a tool. * stands for any text, also
// for none, and may stand anywhere; without one the pattern is the name.
func MatchTool(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, last)
}

// AnswerCut is the last text of a tool's answer that does not have all that the
// tool printed; its metadata has "truncated": true then.
const AnswerCut = "[The answer was cut: the tool printed more than the first 1 MiB, which is all that is kept.]"
