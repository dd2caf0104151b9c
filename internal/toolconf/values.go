package toolconf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// The methods text, texts, table, whole, duration, boolean, cores and size each read
// one key, which may have several names. If the key is absent, or has an error, which
// is reported, the target keeps its value.

// rule says which texts are valid.
type rule struct {
	want   string
	ok     func(string) bool // nil: any text
	secret bool
	raw    bool              // variables are not expanded
	keep   func(string) bool // accepts text between ${ and } that is not a variable
}

// oneOf accepts one of several words.
func oneOf(words ...string) rule {
	return rule{want: conffile.WantOneOf(words...), ok: func(s string) bool { return slices.Contains(words, s) }}
}

func (s *section) text(to *string, r rule, names ...string) {
	if pair, key, ok := s.take(names...); ok {
		s.textOf(to, pair.Value, key, r)
	}
}

// textOf reads a text and expands its variables.
func (s *section) textOf(to *string, n *conffile.Node, key string, r rule) bool {
	text, ok := n.Text, n.Form == conffile.Text
	if ok && !r.raw {
		if text, _, ok = s.fill(n, key, r.keep); !ok {
			return false
		}
	}
	if ok = ok && (r.ok == nil || r.ok(text)); !ok {
		s.wrong(n, key, r.want, r.secret)
		return false
	}
	*to = text
	return true
}

// scalar also accepts numbers and booleans as texts, because environment
// variables and arguments are often written that way.
func (s *section) scalar(n *conffile.Node, key string, r rule) (text string, ok bool) {
	switch {
	case n.Fault != "":
		s.problem(n.Line, key, n.Fault)
		return "", false
	case n.Form == conffile.Number || n.Form == conffile.Boolean:
		return n.Text, true
	}
	ok = s.textOf(&text, n, key, r)
	return text, ok
}

func (s *section) texts(to *[]string, r rule, names ...string) {
	if pair, key, ok := s.take(names...); ok {
		s.items(pair.Value, key, r, func(n *conffile.Node, key string) {
			if text, ok := s.scalar(n, key, r); ok {
				*to = append(*to, text)
			}
		})
	}
}

// items calls f for the items of a list.
func (s *section) items(n *conffile.Node, key string, r rule, f func(n *conffile.Node, key string)) {
	if n.Form != conffile.List {
		s.problem(n.Line, key, "want a list, each item "+r.want+", got "+form(n))
		return
	}
	for i, item := range n.Items {
		f(item, fmt.Sprintf("%s[%d]", key, i))
	}
}

// folders reads a list of folders.
func (s *section) folders(to *[]string, name string) {
	s.texts(to, folderName, name)
	for i, path := range *to {
		(*to)[i] = s.path(path)
	}
}

func (s *section) table(to *map[string]string, name, value rule, names ...string) {
	pair, key, ok := s.take(names...)
	if !ok {
		return
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "a section of keys and values", true)
		return
	}
	out := map[string]string{}
	s.once(pair.Value, key, func(p conffile.Pair, sub string) {
		if !name.ok(p.Key) {
			s.problem(p.Line, sub, "want "+name.want+" as the key")
		} else if text, ok := s.scalar(p.Value, sub, value); ok {
			out[p.Key] = text
		}
	})
	if len(out) > 0 {
		*to = out
	}
}

// plainVariables are not secret: hiding their values would hide paths.
var plainVariables = []string{"HOME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"}

// fill expands the variables of a text.
func (s *section) fill(n *conffile.Node, key string, keep func(string) bool) (text string, used, ok bool) {
	env := func(name string) (string, bool) {
		value, set := s.env(name)
		if set && value != "" && !slices.Contains(plainVariables, name) && !slices.Contains(s.filled, value) {
			s.filled = append(s.filled, value)
		}
		return value, set
	}
	text, used, err := conffile.Expand(n.Text, env, keep)
	switch {
	case err != nil:
		s.problem(n.Line, key, err.Error())
	case strings.ContainsRune(text, 0):
		s.problem(n.Line, key, "it holds a zero byte")
	default:
		return text, used, true
	}
	return "", used, false
}

// typed reads a value other than a text. It may come from a variable.
func typed[T any](s *section, to *T, want string, get func(conffile.Value) (T, bool), names []string) {
	pair, key, ok := s.take(names...)
	if !ok {
		return
	}
	v := conffile.Value{Form: pair.Value.Form, Text: pair.Value.Text}
	if v.Form == conffile.Text {
		if v.Text, v.Untyped, ok = s.fill(pair.Value, key, nil); !ok {
			return
		}
	}
	if got, ok := get(v); ok {
		*to = got
	} else {
		s.wrong(pair.Value, key, want, false)
	}
}

func (s *section) whole(to *int, lo, hi int, names ...string) {
	typed(s, to, conffile.WantWhole(lo, hi), func(v conffile.Value) (int, bool) { return v.Whole(lo, hi) }, names)
}

func (s *section) boolean(to *bool, names ...string) {
	typed(s, to, "true or false", conffile.Value.Boolean, names)
}

// duration reads a Go duration or a number. A number counts milliseconds if the key
// ends in Ms, else seconds.
func (s *section) duration(to *time.Duration, lo, hi time.Duration, names ...string) {
	want := conffile.WantDuration(lo, hi)
	pair, _ := s.given(names...)
	if strings.HasSuffix(pair.Key, "Ms") {
		want = fmt.Sprintf("a number of milliseconds from %d to %d", lo.Milliseconds(), hi.Milliseconds())
	}
	typed(s, to, want, func(v conffile.Value) (time.Duration, bool) { return v.Duration(lo, hi, s.unit(pair)) }, names)
}

// unit is the unit of a plain number. Some coding CLIs give timeout in seconds, at most
// an hour, others in milliseconds.
func (s *section) unit(pair conffile.Pair) time.Duration {
	const hour = 3600
	n, err := strconv.ParseFloat(pair.Value.Text, 64)
	if strings.HasSuffix(pair.Key, "Ms") || s.millis || !s.strict && pair.Key == "timeout" && err == nil && n > hour {
		return time.Millisecond
	}
	return time.Second
}

// noteUnit notes how a plain number of timeout is understood in a file that other
// programs read too, and which key is unambiguous.
func (s *section) noteUnit(clear string) {
	if pair, ok := s.given("timeout"); ok && !s.strict && pair.Value.Form == conffile.Number {
		word := "seconds"
		if s.unit(pair) == time.Millisecond {
			word = "milliseconds"
		}
		s.merge.note(s.where(pair.Line), s.sub("timeout"), conffile.Cut(pair.Value.Text)+" is taken for "+word+": "+clear+" leaves no doubt", false)
	}
}

func (s *section) cores(to *float64, name string) {
	typed(s, to, "how many cores' worth of time, from 0.01 to 10000, such as 0.5", func(v conffile.Value) (float64, bool) {
		text, ok := v.Number()
		n, err := strconv.ParseFloat(text, 64)
		return n, ok && err == nil && n >= 0.01 && n <= 10_000
	}, []string{name})
}

// units are the units of sizes. B is the last, since all others end in it.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// size reads a number of bytes.
func (s *section) size(to *int64, lo, hi int64, names ...string) {
	want := fmt.Sprintf("a size from %s to %s, such as 512MiB, 512MB or a number of bytes", Size(lo), Size(hi))
	typed(s, to, want, func(v conffile.Value) (int64, bool) {
		text, times := strings.TrimSpace(v.Text), 1.0
		for _, u := range units {
			if rest, ok := strings.CutSuffix(text, u.name); ok {
				text, times = strings.TrimSpace(rest), u.bytes
				break
			}
		}
		n, err := strconv.ParseFloat(text, 64)
		n *= times
		// Refuses NaN and fractions of a byte.
		return int64(n), err == nil && n == math.Trunc(n) && n >= float64(lo) && n <= float64(hi)
	}, names)
}

// Size formats a number of bytes as in files.
func Size(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; n >= int64(u.bytes) && n%int64(u.bytes) == 0 {
			return fmt.Sprintf("%d%s", n/int64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
