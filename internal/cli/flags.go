package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

func newChoice(p *string, def string, words ...string) *choice {
	*p = def
	return &choice{p, words}
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s or %s", strings.Join(c.words[:len(c.words)-1], ", "), c.words[len(c.words)-1])
	}
	*c.value = s
	return nil
}

// span is a flag that takes a duration, or a number of seconds.
type span time.Duration

func (s *span) Type() string { return "duration" }
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	if err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("want more than 0")
	}
	*s = span(d)
	return nil
}

// seconds rounds up to whole seconds, which is what the API counts in.
func (s span) seconds() int { return int(math.Ceil(time.Duration(s).Seconds())) }

func parseSpan(text string) (time.Duration, error) {
	if sec, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(sec) < 1e9 {
		return time.Duration(sec * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 90s or 1h30m, or a number of seconds")
	}
	return d, nil
}

// parseWhen takes a time, or a duration from now on.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := parseSpan(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("want a time such as 2026-01-31T18:00:00Z, or a duration from now such as 90m")
	}
	return now.Add(d), nil
}
