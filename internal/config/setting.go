package config

import (
	"cmp"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// setting is one key: which values it accepts and where they go.
type setting struct {
	key    string
	want   string // what is expected, for people
	env    []string
	secret bool // errors do not show its value
	commas bool // its variables contain a list
	set    func(value) bool
	// tell replaces set for keys with more specific errors; "": no error.
	tell func(value) string
	// nested reads a value that is neither a scalar nor a plain list.
	nested func(f *file, key string, pair conffile.Pair)
}

type schema []setting

func (s schema) find(key string) *setting {
	i := slices.IndexFunc(s, func(x setting) bool { return x.key == key })
	if i < 0 {
		return nil
	}
	return &s[i]
}

// section reports whether key has keys below it.
func (s schema) section(key string) bool {
	return slices.ContainsFunc(s, func(x setting) bool { return strings.HasPrefix(x.key, key+".") })
}

// apply sets a value and returns the mistake in it, or "".
func (x *setting) apply(v value) string {
	if x.tell != nil {
		return x.tell(v)
	}
	if x.set != nil && x.set(v) {
		return ""
	}
	if x.secret && v.Form == conffile.Text {
		return "want " + x.want + ", got something else"
	}
	return "want " + x.want + ", got " + v.Shown()
}

func (x setting) from(env ...string) setting { x.env = env; return x }
func (x setting) hidden() setting            { x.secret = true; return x }
func (x setting) several() setting           { x.commas = true; return x }

func text(key, want string, to *string, valid func(string) bool) setting {
	return typed(key, want, to, func(v value) (string, bool) { return v.Text, v.Form == conffile.Text && valid(v.Text) })
}

func oneOf[W ~string](key string, to *W, words ...W) setting {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return typed(key, conffile.WantOneOf(names...), to, func(v value) (W, bool) {
		return W(v.Text), v.Form == conffile.Text && slices.Contains(names, v.Text)
	})
}

func path(key string, to *string) setting {
	return typed(key, "a path", to, func(v value) (string, bool) {
		return v.asPath(v.Text), v.Form == conffile.Text && v.Text != "" && !strings.ContainsRune(v.Text, 0)
	})
}

func whole(key string, lo, hi int, to *int) setting {
	return typed(key, conffile.WantWhole(lo, hi), to, func(v value) (int, bool) { return v.Whole(lo, hi) })
}

// size is a number of bytes, 0 for none.
func size(key string, to *int64) setting {
	return typed(key, "a size such as 20GiB or 500MB, from 1MB to 1PB, or 0 for none", to, func(v value) (int64, bool) {
		n, ok := bytesOf(v.Text)
		return n, ok && (v.Form == conffile.Text || v.Form == conffile.Number) && (n == 0 || n >= 1e6 && n <= 1e15)
	})
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,16})(?:\.([0-9]{1,3}))? ?([kKMGTP]i?B|B)?$`)

// bytesOf parses a number of bytes, such as 20GiB, 1.5 TB or 500000000.
func bytesOf(s string) (int64, bool) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil || m[2] != "" && (m[3] == "" || m[3] == "B") {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1]+"."+cmp.Or(m[2], "0"), 64)
	base := 1000.0
	if strings.Contains(m[3], "i") {
		base = 1024
	}
	if m[3] != "" && m[3] != "B" {
		n *= math.Pow(base, float64(strings.IndexByte("KMGTP", strings.ToUpper(m[3])[0])+1))
	}
	return int64(n), err == nil && n <= 1e15
}

func boolean(key string, to *bool) setting {
	return typed(key, "true or false", to, func(v value) (bool, bool) { return v.Boolean() })
}

func duration(key string, lo, hi time.Duration, to *time.Duration) setting {
	return typed(key, conffile.WantDuration(lo, hi), to, func(v value) (time.Duration, bool) { return v.duration(lo, hi) })
}

func decimal(key string, lo, hi float64, to *float64) setting {
	return typed(key, conffile.WantDecimal(lo, hi), to, func(v value) (float64, bool) { return v.Decimal(lo, hi) })
}

// limit is a duration that may also be 0, for none.
func limit(key string, lo, hi time.Duration, to *time.Duration) setting {
	return typed(key, conffile.WantDuration(lo, hi)+", or 0 for none", to, func(v value) (time.Duration, bool) {
		d, ok := v.duration(0, hi)
		return d, ok && (d == 0 || d >= lo)
	})
}

func list(key, want string, to *[]string, valid func(string) bool) setting {
	return typed(key, "a list of "+want, to, func(v value) ([]string, bool) {
		items, ok := v.asList()
		return items, ok && !slices.ContainsFunc(items, func(s string) bool { return !valid(s) })
	})
}

func paths(key string, to *[]string) setting {
	return typed(key, "a list of paths", to, func(v value) ([]string, bool) {
		items, ok := v.asList()
		out := make([]string, len(items))
		for i, item := range items {
			out[i] = v.asPath(item)
		}
		return out, ok && !slices.Contains(items, "")
	})
}

// typed is a key whose value is converted by get.
func typed[V any](key, want string, to *V, get func(value) (V, bool)) setting {
	return setting{key: key, want: want, set: func(v value) bool {
		got, ok := get(v)
		if ok {
			*to = got
		}
		return ok
	}}
}

func notEmpty(s string) bool { return strings.TrimSpace(s) != "" }

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// validToken reports whether a token is valid in a header.
func validToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// value is a value before it is converted to the type of its key.
type value struct {
	conffile.Value
	list  []string
	table map[string]string
	// Relative paths are relative to base, and ~ is home.
	base, home string
}

// duration also accepts a number of seconds in quotes.
func (v value) duration(lo, hi time.Duration) (time.Duration, bool) {
	v.Untyped = true
	return v.Duration(lo, hi, time.Second)
}

// asList accepts a list, and from a flag or variable also a single text.
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
