package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// setting is one key: what it takes and where that goes.
type setting[T any] struct {
	key    string
	want   string // what is expected, for people
	env    []string
	secret bool // its value is not shown in errors
	commas bool // its variables hold a list
	set    func(*T, value) bool
	// tell is set for those that can say better what is wrong; "" is nothing.
	tell func(*T, value) string
	// nested takes a value that is not one scalar or one plain list.
	nested func(*file, conffile.Pair, *T)
}

type schema[T any] []setting[T]

func (s schema[T]) find(key string) *setting[T] {
	i := slices.IndexFunc(s, func(x setting[T]) bool { return x.key == key })
	if i < 0 {
		return nil
	}
	return &s[i]
}

// section reports whether key has keys below it.
func (s schema[T]) section(key string) bool {
	return slices.ContainsFunc(s, func(x setting[T]) bool { return strings.HasPrefix(x.key, key+".") })
}

// apply sets a value and returns what is wrong with it, or "".
func (x *setting[T]) apply(target *T, v value) string {
	if x.tell != nil {
		return x.tell(target, v)
	}
	if x.set != nil && x.set(target, v) {
		return ""
	}
	if x.secret && v.Form == conffile.Text {
		return "want " + x.want + ", got something else"
	}
	return "want " + x.want + ", got " + v.Shown()
}

func (x setting[T]) from(env ...string) setting[T] { x.env = env; return x }
func (x setting[T]) hidden() setting[T]            { x.secret = true; return x }
func (x setting[T]) several() setting[T]           { x.commas = true; return x }

func text[T any](key, want string, p func(*T) *string, ok func(string) bool) setting[T] {
	return setting[T]{key: key, want: want, set: func(c *T, v value) bool {
		s, isText := v.asText()
		if !isText || ok != nil && !ok(s) {
			return false
		}
		*p(c) = s
		return true
	}}
}

func oneOf[T any, W ~string](key string, p func(*T) *W, words ...W) setting[T] {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return setting[T]{key: key, want: conffile.WantOneOf(names...), set: func(c *T, v value) bool {
		s, ok := v.asText()
		if ok = ok && slices.Contains(words, W(s)); ok {
			*p(c) = W(s)
		}
		return ok
	}}
}

func path[T any](key string, p func(*T) *string) setting[T] {
	return setting[T]{key: key, want: "a path", set: func(c *T, v value) bool {
		s, ok := v.asText()
		if ok = ok && s != "" && !strings.ContainsRune(s, 0); ok {
			*p(c) = v.asPath(s)
		}
		return ok
	}}
}

func whole[T any](key string, lo, hi int, p func(*T) *int) setting[T] {
	return typed(key, conffile.WantWhole(lo, hi), p, func(v value) (int, bool) { return v.Whole(lo, hi) })
}

func boolean[T any](key string, p func(*T) *bool) setting[T] {
	return typed(key, "true or false", p, func(v value) (bool, bool) { return v.Boolean() })
}

func duration[T any](key string, lo, hi time.Duration, p func(*T) *time.Duration) setting[T] {
	return typed(key, conffile.WantDuration(lo, hi), p, func(v value) (time.Duration, bool) { return v.duration(lo, hi) })
}

// limit is a duration that may also be 0, for none.
func limit[T any](key string, lo, hi time.Duration, p func(*T) *time.Duration) setting[T] {
	return typed(key, conffile.WantDuration(lo, hi)+", or 0 for none", p, func(v value) (time.Duration, bool) {
		d, ok := v.duration(0, hi)
		return d, ok && (d == 0 || d >= lo)
	})
}

// typed is a key whose value get takes.
func typed[T, V any](key, want string, p func(*T) *V, get func(value) (V, bool)) setting[T] {
	return setting[T]{key: key, want: want, set: func(c *T, v value) bool {
		got, ok := get(v)
		if ok {
			*p(c) = got
		}
		return ok
	}}
}

func list[T any](key, want string, p func(*T) *[]string, ok func(string) bool) setting[T] {
	return setting[T]{key: key, want: "a list of " + want, set: func(c *T, v value) bool {
		items, isList := v.asList()
		if !isList || slices.ContainsFunc(items, func(s string) bool { return !ok(s) }) {
			return false
		}
		*p(c) = items
		return true
	}}
}

func paths[T any](key string, p func(*T) *[]string) setting[T] {
	return setting[T]{key: key, want: "a list of paths", set: func(c *T, v value) bool {
		items, ok := v.asList()
		if !ok || slices.Contains(items, "") {
			return false
		}
		out := make([]string, len(items))
		for i, item := range items {
			out[i] = v.asPath(item)
		}
		*p(c) = out
		return true
	}}
}

func notEmpty(s string) bool { return strings.TrimSpace(s) != "" }

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// validToken reports whether a token can stand in a header.
func validToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// value is a value before it is known what it should be.
type value struct {
	conffile.Value
	list  []string
	table map[string]string
	// Relative paths are relative to base, ~ is home.
	base, home string
}

func (v value) asText() (string, bool) { return v.Text, v.Form == conffile.Text }

// duration takes a number of seconds in quotes too.
func (v value) duration(lo, hi time.Duration) (time.Duration, bool) {
	v.Untyped = true
	return v.Duration(lo, hi, time.Second)
}

// asList takes a list, or from a flag or variable a text as a list of one.
func (v value) asList() ([]string, bool) {
	switch {
	case v.Form == conffile.List, v.Form == conffile.Nothing:
		return v.list, true
	case v.Form == conffile.Text && v.Untyped:
		return []string{v.Text}, true
	}
	return nil, false
}

// asPath makes a path absolute.
func (v value) asPath(text string) string { return conffile.Path(v.base, v.home, text) }
