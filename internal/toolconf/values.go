package toolconf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// rule says what a text must be.
type rule struct {
	want   string
	ok     func(string) bool // nil: anything
	secret bool
	keep   func(string) bool // what stands between braces and is no variable
}

func (s *section) text(r rule, names ...string) string {
	pair, key, ok := s.take(names...)
	if !ok {
		return ""
	}
	return s.textOf(pair.Value, key, r)
}

func (s *section) textOf(n *conffile.Node, key string, r rule) string {
	if n.Form != conffile.Text {
		s.wrong(n, key, r.want, r.secret)
		return ""
	}
	text, _, ok := s.fill(n, key, r.keep)
	if ok && r.ok != nil && !r.ok(text) {
		s.wrong(n, key, r.want, r.secret)
		return ""
	}
	return text
}

// scalar takes numbers and booleans for texts, as the values of variables and
// arguments often are written.
func (s *section) scalar(n *conffile.Node, key string, r rule) (string, bool) {
	switch {
	case n.Fault != "":
		s.problem(n.Line, key, n.Fault)
		return "", false
	case n.Form == conffile.Number || n.Form == conffile.Boolean:
		return n.Text, true
	case n.Form != conffile.Text:
		s.wrong(n, key, r.want, r.secret)
		return "", false
	}
	text, _, ok := s.fill(n, key, r.keep)
	if ok && r.ok != nil && !r.ok(text) {
		s.wrong(n, key, r.want, r.secret)
		return "", false
	}
	return text, ok
}

func (s *section) texts(r rule, names ...string) []string {
	pair, key, ok := s.take(names...)
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.List {
		s.problem(pair.Value.Line, key, "want a list, each item "+r.want+", got "+form(pair.Value))
		return nil
	}
	var out []string
	for i, item := range pair.Value.Items {
		if text, ok := s.scalar(item, fmt.Sprintf("%s[%d]", key, i), r); ok {
			out = append(out, text)
		}
	}
	return out
}

func (s *section) table(name, value rule, names ...string) map[string]string {
	pair, key, ok := s.take(names...)
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "a section of keys and values", true)
		return nil
	}
	out := map[string]string{}
	first := map[string]int{}
	for _, p := range pair.Value.Pairs {
		sub := key + "." + shownName(p.Key)
		if line, twice := first[p.Key]; twice {
			s.problem(p.Line, sub, "it stands twice, first at "+s.where(line))
			continue
		}
		first[p.Key] = p.Line
		if !name.ok(p.Key) {
			s.problem(p.Line, sub, "want "+name.want+" as the key")
			continue
		}
		if text, ok := s.scalar(p.Value, sub, value); ok {
			out[p.Key] = text
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (s *section) whole(lo, hi int, names ...string) int {
	pair, key, ok := s.take(names...)
	if !ok {
		return 0
	}
	text, loose := s.number(pair.Value, key)
	n, err := strconv.Atoi(text)
	if !loose || err != nil || n < lo || n > hi {
		if text != unsaid {
			s.wrong(pair.Value, key, fmt.Sprintf("a whole number from %d to %d", lo, hi), false)
		}
		return 0
	}
	return n
}

// unsaid is the text of a value whose fault has been reported.
const unsaid = "\x00"

// number is the text of a number, which a variable may hold.
func (s *section) number(n *conffile.Node, key string) (text string, ok bool) {
	if n.Form == conffile.Number {
		return n.Text, true
	}
	if n.Form != conffile.Text {
		return "", false
	}
	text, used, ok := s.fill(n, key, nil)
	if !ok {
		return unsaid, false
	}
	return strings.TrimSpace(text), used
}

// duration takes a Go duration or a number, of milliseconds where the key
// says so and else of seconds.
func (s *section) duration(lo, hi time.Duration, names ...string) (time.Duration, bool) {
	pair, key, ok := s.take(names...)
	if !ok {
		return 0, false
	}
	unit := s.unit(pair)
	want := fmt.Sprintf("a duration from %s to %s, such as 90s, 1h30m or a number of seconds", conffile.Brief(lo), conffile.Brief(hi))
	if strings.HasSuffix(pair.Key, "Ms") {
		want = fmt.Sprintf("a number of milliseconds from %d to %d", lo.Milliseconds(), hi.Milliseconds())
	}
	text, loose := s.number(pair.Value, key)
	if text == unsaid {
		return 0, false
	}
	d, good := time.Duration(0), false
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		// NaN fails the comparison, and the limit keeps the product in range.
		d, good = time.Duration(f*float64(unit)), loose && math.Abs(f) < 1e9
	} else if d, err = time.ParseDuration(text); err == nil {
		good = true
	}
	if !good || d < lo || d > hi {
		s.wrong(pair.Value, key, want, false)
		return 0, false
	}
	return d, true
}

// unit is what a plain number counts. Coding CLIs write timeout in seconds or
// in milliseconds, with an hour as the most that any of the former take.
func (s *section) unit(pair conffile.Pair) time.Duration {
	const hour = 3600
	n, err := strconv.ParseFloat(pair.Value.Text, 64)
	if strings.HasSuffix(pair.Key, "Ms") || s.millis || !s.strict && pair.Key == "timeout" && err == nil && n > hour {
		return time.Millisecond
	}
	return time.Second
}

func (s *section) boolean(otherwise bool, names ...string) bool {
	pair, key, ok := s.take(names...)
	if !ok {
		return otherwise
	}
	n := pair.Value
	text := n.Text
	if n.Form == conffile.Text {
		var used bool
		if text, used, ok = s.fill(n, key, nil); !ok {
			return otherwise
		}
		if !used {
			text = ""
		}
	}
	if text != "true" && text != "false" || n.Form == conffile.Number {
		s.wrong(n, key, "true or false", false)
		return otherwise
	}
	return text == "true"
}
