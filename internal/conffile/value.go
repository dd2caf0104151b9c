package conffile

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// Value is a scalar with its variables expanded, before its type is known.
type Value struct {
	Form Form
	Text string
	// Untyped says that the value comes from a source with texts only, such as
	// the environment or a flag, so that it may represent a number or a boolean.
	Untyped bool
}

// Shown formats the value for an error.
func (v Value) Shown() string { return Shown(v.Form, v.Text) }

// Number returns the text of a number.
func (v Value) Number() (string, bool) {
	return strings.TrimSpace(v.Text), v.Form == Number || v.Form == Text && v.Untyped
}

// Whole parses a whole number from lo to hi.
func (v Value) Whole(lo, hi int) (int, bool) {
	text, ok := v.Number()
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && lo <= n && n <= hi
}

// WantWhole describes what Whole accepts.
func WantWhole(lo, hi int) string { return fmt.Sprintf("a whole number from %d to %d", lo, hi) }

// Decimal parses a number from lo to hi.
func (v Value) Decimal(lo, hi float64) (float64, bool) {
	text, ok := v.Number()
	n, err := strconv.ParseFloat(text, 64)
	return n, ok && err == nil && lo <= n && n <= hi // false for NaN
}

// WantDecimal describes what Decimal accepts.
func WantDecimal(lo, hi float64) string {
	return "a number from " + strconv.FormatFloat(lo, 'f', -1, 64) + " to " + strconv.FormatFloat(hi, 'f', -1, 64)
}

// Boolean parses true or false.
func (v Value) Boolean() (on, ok bool) {
	typed := v.Form == Boolean || v.Form == Text && v.Untyped
	return v.Text == "true", typed && (v.Text == "true" || v.Text == "false")
}

// Duration parses a Go duration, or a number of units, from lo to hi.
func (v Value) Duration(lo, hi, unit time.Duration) (time.Duration, bool) {
	text, ok := v.Number()
	n, err := strconv.ParseFloat(text, 64)
	// A NaN fails the comparison, and the bound prevents an overflow.
	d, ok := time.Duration(n*float64(unit)), ok && math.Abs(n) < 1e9
	if err != nil {
		d, err = time.ParseDuration(text)
		ok = v.Form == Text && err == nil
	}
	return d, ok && lo <= d && d <= hi
}

// WantDuration describes what Duration accepts, with seconds as the unit.
func WantDuration(lo, hi time.Duration) string {
	return fmt.Sprintf("a duration from %s to %s, such as 90s, 1h30m or a number of seconds", Brief(lo), Brief(hi))
}

// Brief formats a duration without the parts that are zero.
func Brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// WantOneOf lists the accepted words.
func WantOneOf(words ...string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Once yields the pairs of a section in their order, each key once. For further
// pairs with the same key it calls duplicate with an error text.
func (n *Node) Once(file string, duplicate func(p Pair, text string)) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		first := make(map[string]int, len(n.Pairs))
		for _, p := range n.Pairs {
			if line, twice := first[p.Key]; twice {
				duplicate(p, "it stands twice, first at "+Where(file, line))
				continue
			}
			first[p.Key] = p.Line
			if !yield(p) {
				return
			}
		}
	}
}
