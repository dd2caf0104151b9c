package toolconf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// reader reads one file.
type reader struct {
	name   string // as the user knows it
	strict bool   // only Signalbox reads the file: an unknown key is an error
	base   string // for relative paths
	home   string
	dir    string // folder in which the program was started
	env    conffile.Env
	merge  *merge
	filled []string // values of the expanded variables
	named  int      // number of entries
}

func (r *reader) where(line int) string { return conffile.Where(r.name, line) }

func (r *reader) problem(line int, key, text string) { r.merge.problem(r.where(line), key, text) }

// odd reports an error in a file that only Signalbox reads, and a note in one that
// other programs read too.
func (r *reader) odd(line int, key, text string) {
	if r.strict {
		r.problem(line, key, text)
	} else {
		r.merge.note(r.where(line), key, text+" (ignored)", true)
	}
}

// section is a section while it is being read.
type section struct {
	*reader
	key    string
	line   int
	pairs  map[string]conffile.Pair
	list   []conffile.Pair // in order, each key once
	known  []string        // the keys that were read
	millis bool            // plain numbers are milliseconds
}

// open makes a section of a node, or reports that it is not one. It also reports
// retired keys.
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
	s.once(n, key, func(pair conffile.Pair, sub string) {
		s.pairs[pair.Key] = pair
		if text := Retired(pair.Key); text != "" {
			r.problem(pair.Line, sub, text)
		} else {
			s.list = append(s.list, pair)
		}
	})
	return s
}

// once calls f for each pair of a section with its full key, and reports duplicate
// keys.
func (r *reader) once(n *conffile.Node, key string, f func(pair conffile.Pair, sub string)) {
	for p := range n.Once(r.name, func(p conffile.Pair, text string) { r.problem(p.Line, sub(key, p.Key), text) }) {
		f(p, sub(key, p.Key))
	}
}

// form is the form of a node without its value, which may be secret.
func form(n *conffile.Node) string { return strings.Replace(string(n.Form), "the ", "a ", 1) }

func (s *section) sub(name string) string { return sub(s.key, name) }

// sub is the key of an entry of a section.
func sub(key, name string) string {
	if key == "" {
		return shownName(name)
	}
	return key + "." + shownName(name)
}

// shownName is a name from a file as part of a key in an error.
func shownName(name string) string {
	name = conffile.Cut(name)
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return strconv.Quote(name)
	}
	return name
}

// take returns the entry of a key that may have several names. An entry without a
// value counts as absent.
func (s *section) take(names ...string) (found conffile.Pair, key string, ok bool) {
	for _, name := range names {
		s.known = append(s.known, name)
		pair, here := s.pairs[name]
		switch {
		case here && ok:
			s.problem(pair.Line, s.sub(name), "it is the same as "+found.Key+", which stands at "+s.where(found.Line)+": give one of them")
		case here:
			found, key, ok = pair, s.sub(name), true
		}
	}
	if ok && found.Value.Fault != "" {
		s.problem(found.Value.Line, key, found.Value.Fault)
		return found, key, false
	}
	return found, key, ok && found.Value.Form != conffile.Nothing
}

// given is take without marking the key as known or reporting errors.
func (s *section) given(names ...string) (conffile.Pair, bool) {
	for _, name := range names {
		if pair, ok := s.pairs[name]; ok && (pair.Value.Form != conffile.Nothing || pair.Value.Fault != "") {
			return pair, true
		}
	}
	return conffile.Pair{}, false
}

func (s *section) has(names ...string) bool {
	_, ok := s.given(names...)
	return ok
}

// inside reads the section under a key. word, which may be nil, reads a value that is
// not a section.
func (s *section) inside(name string, word func(n *conffile.Node, key string), read func(in *section)) {
	pair, key, ok := s.take(name)
	switch {
	case !ok:
	case word != nil && pair.Value.Form != conffile.Section:
		word(pair.Value, key)
	default:
		if in := s.open(pair.Value, pair.Line, key); in != nil {
			read(in)
			in.finish(nil)
		}
	}
}

// wrong reports a value that is not what was wanted. Its text is shown as in the file
// unless it may be secret.
func (s *section) wrong(n *conffile.Node, key, want string, secret bool) {
	got := conffile.Shown(n.Form, n.Text)
	switch {
	case secret && n.Form == conffile.Text && n.Text != "":
		got = "another text"
	case secret && n.Form != conffile.Text:
		got = form(n)
	}
	s.problem(n.Line, key, "want "+want+", got "+got)
}

// path makes a path absolute.
func (s *section) path(text string) string { return conffile.Path(s.base, s.home, text) }

// capacityKeys are errors when they are misspelt, also in files of other programs:
// without them calls would have only the limit of the queue default.
var capacityKeys = []string{"queue", keyQueues, "toolQueues"}

// finish reports unknown keys. foreign are keys of other programs with an
// explanation for each.
func (s *section) finish(foreign map[string]string) {
	for _, pair := range s.list {
		if slices.Contains(s.known, pair.Key) {
			continue
		}
		near := conffile.Suggest(pair.Key, s.known)
		switch text, ok := foreign[pair.Key]; {
		case ok && !s.strict:
			s.odd(pair.Line, s.sub(pair.Key), text)
		case slices.ContainsFunc(capacityKeys, func(k string) bool { return near == conffile.Suggest(k, []string{k}) }):
			s.problem(pair.Line, s.sub(pair.Key), "there is no such key"+near)
		default:
			s.odd(pair.Line, s.sub(pair.Key), "there is no such key"+near)
		}
	}
}
