package config

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

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
func (v value) asPath(text string) string {
	if rest, ok := strings.CutPrefix(text, "~"); ok && v.home != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		return filepath.Join(v.home, rest)
	}
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(v.base, text)
}
