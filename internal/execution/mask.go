package execution

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Mask hides the values of a task's env in an agent's messages, since these go into rows,
// the journal and logs: agents tend to quote what they could not use.
type Mask struct {
	values  []string // longest first, since one may be a prefix of another
	unknown bool     // the task had an env that can no longer be read
}

// NoMask withholds every message.
var NoMask = Mask{unknown: true}

// withheldText replaces messages that may quote values unknown here.
const withheldText = "withheld: the task had an env, whose values are erased here and may be quoted in what the agent said"

// minMaskedBytes is the length from which an env value is masked: shorter ones, such as 1
// or true, occur in any text.
const minMaskedBytes = 6

// MaskOf returns the mask of a claimed task. If its env could not be read, or was erased
// because the task has ended, the mask withholds everything.
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
