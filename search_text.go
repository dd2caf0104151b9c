package signalbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How a query and what is wrong with it are written.

// quote writes a text in quotes.
func quote(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}

// bare writes a value, in quotes where it needs them.
func bare(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == '"' || r == ',' || unicode.IsSpace(r) }) {
		return quote(s)
	}
	return s
}

// short is a word of a caller, cut for a message.
func short(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return s
}

// didYouMean names the word that looks most like one that is wrong.
func didYouMean(typed string, known []string) string {
	best := Nearest(strings.ToLower(typed), known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// Nearest is the known name that a misspelt one most likely stands for, at most
// two letters away; "" if none is that near.
func Nearest(typed string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(typed, k); k != "" && d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters must be changed, added or left out to make one
// word of the other; of long words it is only known to be much.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 32
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
