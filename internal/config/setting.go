package config

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
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
	if x.secret && v.form == conffile.Text {
		return "want " + x.want + ", got something else"
	}
	return "want " + x.want + ", got " + v.shown()
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
	want := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	return setting[T]{key: key, want: want, set: func(c *T, v value) bool {
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
	return setting[T]{key: key, want: fmt.Sprintf("a whole number from %d to %d", lo, hi), set: func(c *T, v value) bool {
		n, ok := v.asWhole()
		if ok = ok && n >= lo && n <= hi; ok {
			*p(c) = n
		}
		return ok
	}}
}

func duration[T any](key string, lo, hi time.Duration, p func(*T) *time.Duration) setting[T] {
	want := fmt.Sprintf("a duration from %s to %s, such as 90s, 1h30m or a number of seconds", conffile.Brief(lo), conffile.Brief(hi))
	return setting[T]{key: key, want: want, set: func(c *T, v value) bool {
		d, ok := v.asDuration()
		if ok = ok && d >= lo && d <= hi; ok {
			*p(c) = d
		}
		return ok
	}}
}

// limit is a duration that may also be 0, for none.
func limit[T any](key string, lo, hi time.Duration, p func(*T) *time.Duration) setting[T] {
	x := duration(key, lo, hi, p)
	within := x.set
	x.want += ", or 0 for none"
	x.set = func(c *T, v value) bool {
		if d, ok := v.asDuration(); ok && d == 0 {
			*p(c) = 0
			return true
		}
		return within(c, v)
	}
	return x
}

func boolean[T any](key string, p func(*T) *bool) setting[T] {
	return setting[T]{key: key, want: "true or false", set: func(c *T, v value) bool {
		on := v.text == "true"
		ok := v.form == conffile.Boolean || v.form == conffile.Text && v.loose
		if ok = ok && (on || v.text == "false"); ok {
			*p(c) = on
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
	form  conffile.Form
	text  string
	list  []string
	table map[string]string
	// loose says that the text comes from where all is text, the environment
	// or a flag, so that it may stand for a number.
	loose bool
	// Relative paths are relative to base, ~ is home.
	base, home string
}

// shown is the value as an error cites it.
func (v value) shown() string { return conffile.Shown(v.form, v.text) }

func (v value) asText() (string, bool) { return v.text, v.form == conffile.Text }

func (v value) asWhole() (int, bool) {
	if v.form != conffile.Number && !(v.form == conffile.Text && v.loose) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(v.text))
	return n, err == nil
}

// asDuration takes a Go duration, or a number of seconds.
func (v value) asDuration() (time.Duration, bool) {
	if v.form != conffile.Number && v.form != conffile.Text {
		return 0, false
	}
	text := strings.TrimSpace(v.text)
	if sec, err := strconv.ParseFloat(text, 64); err == nil {
		// NaN fails the comparison, and the limit keeps the product in range.
		return time.Duration(sec * float64(time.Second)), math.Abs(sec) < 1e9
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// asList takes a list, or from a flag or variable a text as a list of one.
func (v value) asList() ([]string, bool) {
	switch {
	case v.form == conffile.List, v.form == conffile.Nothing:
		return v.list, true
	case v.form == conffile.Text && v.loose:
		return []string{v.text}, true
	}
	return nil, false
}

// asPath makes a path absolute.
func (v value) asPath(text string) string { return conffile.Path(v.base, v.home, text) }
