package execution

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Mask hides the values of a task's env in what an agent says for people, since
// that goes into rows, the journal and logs: agents like to quote what they could
// not use. It is one rule for all agents, whoever makes the connection.
type Mask struct {
	values  []string // secrets, the longest first: of one that another begins with it would leave the end
	unknown bool     // the task had an env that cannot be read any more
}

// NoMask withholds all that an agent says.
var NoMask = Mask{unknown: true}

// unsayable stands for words that may quote values nobody knows here any more.
const withheldText = "withheld: the task had an env, whose values are erased here and may be quoted in what the agent said"

// maskFrom is the length from which an env value is a secret: shorter ones,
// such as 1 or true, stand in every text.
const minMaskedBytes = 6

// MaskOf is the mask of a claimed task. Where its env could not be read, or was
// erased because the task has ended, it withholds all.
func MaskOf(c *engine.Claimed) Mask {
	if c.Env == nil && c.Request.HadEnv {
		return NoMask
	}
	values := slices.DeleteFunc(slices.Collect(maps.Values(c.Env)), func(v string) bool { return len(v) < minMaskedBytes })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return Mask{values: values}
}

// Empty reports whether there is nothing to hide.
func (m Mask) Empty() bool { return !m.unknown && len(m.values) == 0 }

// Hide returns the text as it may be stored and logged.
func (m Mask) Hide(text string) string {
	if m.unknown && text != "" {
		return withheldText
	}
	for _, v := range m.values {
		text = strings.ReplaceAll(text, v, "***")
	}
	return text
}
