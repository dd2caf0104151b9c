package config

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// form is what a value is by its own look.
type form string

const (
	formText    form = "the text"
	formNumber  form = "the number"
	formBoolean form = "the boolean"
	formList    form = "a list"
	formTable   form = "a section"
	formNothing form = "nothing"
)

// value is a value before it is known what it should be.
type value struct {
	form  form
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
func (v value) shown() string {
	switch v.form {
	case formText:
		return strconv.Quote(cut(v.text))
	case formNumber, formBoolean:
		return string(v.form) + " " + cut(v.text)
	}
	return string(v.form)
}

func cut(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

func (v value) asText() (string, bool) { return v.text, v.form == formText }

func (v value) asWhole() (int, bool) {
	if v.form != formNumber && !(v.form == formText && v.loose) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(v.text))
	return n, err == nil
}

// asDuration takes a Go duration, or a number of seconds.
func (v value) asDuration() (time.Duration, bool) {
	if v.form != formNumber && v.form != formText {
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
	case v.form == formList, v.form == formNothing:
		return v.list, true
	case v.form == formText && v.loose:
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
