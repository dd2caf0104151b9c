package toolconf

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// reader reads one file.
type reader struct {
	name   string // as the person knows it
	strict bool   // the file is ours alone: what is not known is a mistake
	base   string // relative paths are relative to it
	home   string
	env    conffile.Env
	merge  *merge
}

func (r *reader) where(line int) string { return conffile.Where(r.name, line) }

func (r *reader) problem(line int, key, text string) { r.merge.problem(r.where(line), key, text) }

// odd is a mistake in a file of ours, and a note on one that others read too.
func (r *reader) odd(line int, key, text string) {
	if r.strict {
		r.problem(line, key, text)
		return
	}
	r.merge.note(r.where(line), key, text+" (ignored)", true)
}

// section is a section while it is read.
type section struct {
	*reader
	key   string
	line  int
	pairs map[string]conffile.Pair
	list  []conffile.Pair // in order, each key once
	known []string        // what was asked for
}

// open makes a section of a node, or reports why it is none. Retired keys are
// found here, wherever they stand.
func (r *reader) open(n *conffile.Node, line int, key string) *section {
	if n.Fault != "" {
		r.problem(n.Line, key, n.Fault)
		return nil
	}
	if n.Form != conffile.Section {
		r.problem(n.Line, key, "want a section of keys and values, got "+form(n))
		return nil
	}
	s := &section{reader: r, key: key, line: line, pairs: map[string]conffile.Pair{}}
	for _, pair := range n.Pairs {
		if first, twice := s.pairs[pair.Key]; twice {
			r.problem(pair.Line, s.sub(pair.Key), "it stands twice, first at "+r.where(first.Line))
			continue
		}
		s.pairs[pair.Key] = pair
		if text := Retired(pair.Key); text != "" {
			r.problem(pair.Line, s.sub(pair.Key), text)
			continue
		}
		s.list = append(s.list, pair)
	}
	return s
}

// form is what a node is, without its value: that may be a secret.
func form(n *conffile.Node) string {
	switch n.Form {
	case conffile.Text, conffile.Number, conffile.Boolean:
		return strings.Replace(string(n.Form), "the ", "a ", 1)
	}
	return string(n.Form)
}

func (s *section) sub(name string) string {
	if s.key == "" {
		return shownName(name)
	}
	return s.key + "." + shownName(name)
}

// shownName is a name from a file as a part of a key in an error.
func shownName(name string) string {
	name = conffile.Cut(name)
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return strconv.Quote(name)
	}
	return name
}

// take returns the entry of the first of several names for one key. What
// holds nothing counts as not there.
func (s *section) take(names ...string) (conffile.Pair, string, bool) {
	var found conffile.Pair
	ok := false
	for _, name := range names {
		s.known = append(s.known, name)
		pair, here := s.pairs[name]
		switch {
		case !here:
		case ok:
			s.problem(pair.Line, s.sub(name), "it is the same as "+found.Key+", which stands at "+s.where(found.Line)+": give one of them")
		default:
			found, ok = pair, true
		}
	}
	if !ok {
		return found, "", false
	}
	key := s.sub(found.Key)
	if found.Value.Fault != "" {
		s.problem(found.Value.Line, key, found.Value.Fault)
		return found, key, false
	}
	return found, key, found.Value.Form != conffile.Nothing
}

// given is take for those who only want to know whether there is something.
func (s *section) given(names ...string) (conffile.Pair, bool) {
	for _, name := range names {
		if pair, ok := s.pairs[name]; ok && (pair.Value.Form != conffile.Nothing || pair.Value.Fault != "") {
			return pair, true
		}
	}
	return conffile.Pair{}, false
}

// fill expands the variables of a text.
func (s *section) fill(n *conffile.Node, key string, keep func(string) bool) (text string, used, ok bool) {
	text, used, err := conffile.Expand(n.Text, s.env, keep)
	if err != nil {
		s.problem(n.Line, key, err.Error())
		return "", used, false
	}
	if strings.ContainsRune(text, 0) {
		s.problem(n.Line, key, "it holds a zero byte")
		return "", used, false
	}
	return text, used, true
}

// wrong reports a value. Its text is shown as the file has it, where it is no
// secret.
func (s *section) wrong(n *conffile.Node, key, want string, secret bool) {
	got := n.Shown()
	if secret {
		got = form(n)
	}
	s.problem(n.Line, key, "want "+want+", got "+got)
}

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
		s.wrong(pair.Value, key, "a list, each "+r.want, r.secret)
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
			s.problem(p.Line, sub, "want "+name.want+" as its name")
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
	want := fmt.Sprintf("a duration from %s to %s, such as 90s, 1h30m or a number of seconds", lo, hi)
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
	if strings.HasSuffix(pair.Key, "Ms") || !s.strict && pair.Key == "timeout" && err == nil && n > hour {
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

// off reports whether an entry is switched off. The keys of one that is are
// not looked at: its variables may well not be set.
func (s *section) off() bool {
	off := s.boolean(false, "disabled")
	return !s.boolean(true, "enabled") || off
}

// path makes a path absolute.
func (s *section) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "~"); ok && s.home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(s.home, rest)
	}
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(s.base, text)
}

func folder(path string) string { return filepath.Dir(path) }

// finish reports the keys that nobody asked for. foreign are those of other
// programs, with what to know of each.
func (s *section) finish(foreign map[string]string) {
	for _, pair := range s.list {
		if slices.Contains(s.known, pair.Key) {
			continue
		}
		if text, ok := foreign[pair.Key]; ok && !s.strict {
			s.merge.note(s.where(pair.Line), s.sub(pair.Key), text+" (ignored)", true)
			continue
		}
		s.odd(pair.Line, s.sub(pair.Key), "there is no such key"+conffile.Suggest(pair.Key, s.known))
	}
}
