package signalbox

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Query selects tasks. The dashboard, the command line and the API share its
// grammar, for example
//
//	agent:coder state:failed since:2h "billing"
//
// Words are combined with AND. A word may be key:value; several values of a key,
// separated by commas or in several words, are combined with OR. A word or a
// "text in quotes" without a key matches a part of the prompt's first line,
// ignoring case. A minus before a word or key means NOT. The keys are
//
//	agent     that runs it, ran it, or is the only one that may take it
//	state     a state, or waiting, running, ended for several
//	reason    why it ended
//	cause     fingerprint of the line that says why it failed: failures with the same are alike
//	queue     work, pool:KIND, agent:NAME, …
//	source    web, scheduler, cli, agent, user or api
//	job       of the schedule that submitted it
//	session   id of its conversation
//	mode      queue, chat, bypass, tool or land
//	tool      that it calls
//	by        who asked: an e-mail address, the name of a user, agent or service
//	id        beginning or end of its id
//	since     when it ended, or was submitted if it has not: a time, a day or an age such as 2h or 7d
//	until     the same
//	older     it was submitted before a time, or longer ago than an age
//
// The zero Query selects all tasks.
type Query struct {
	clauses []clause // in canonical order
	since   moment
	until   moment
	older   moment
}

// clause is one condition.
type clause struct {
	key    string // "" for a text
	not    bool
	values []string // matches any of them; a text has one
}

// moment is a point in time with the word that it was parsed from.
type moment struct {
	word string
	at   time.Time
}

// MaxQueryBytes bounds the text of a query.
const MaxQueryBytes = 1000

// stateWords are the words for groups of states.
var stateWords = map[string][]State{
	"waiting": {Pending, Parked},
	"running": {Dispatching, Working, Cancelling},
	"ended":   {Completed, Failed, Cancelled, Timeout},
}

// String returns the query in its canonical form, which parses to the same query.
func (q *Query) String() string {
	var words []string
	for _, c := range q.clauses {
		var b strings.Builder
		if c.not {
			b.WriteByte('-')
		}
		if c.key == "" {
			b.WriteString(quote(c.values[0]))
		} else {
			b.WriteString(c.key + ":")
		}
		for i, v := range c.values {
			if c.key == "" {
				break
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(bare(v))
		}
		words = append(words, b.String())
	}
	for _, m := range []struct {
		key string
		moment
	}{{"since", q.since}, {"until", q.until}, {"older", q.older}} {
		if m.word != "" {
			words = append(words, m.key+":"+bare(m.word))
		}
	}
	return strings.Join(words, " ")
}

// Matches reports whether the query selects a task.
func (q *Query) Matches(t *Task) bool {
	when := t.EndedAt
	if !t.State.Terminal() {
		when = t.CreatedAt
	}
	if !q.since.at.IsZero() && when.Before(q.since.at) || !q.until.at.IsZero() && !when.Before(q.until.at) ||
		!q.older.at.IsZero() && !t.CreatedAt.Before(q.older.at) {
		return false
	}
	for i := range q.clauses {
		c := &q.clauses[i]
		if slices.ContainsFunc(c.values, func(v string) bool { return matches(t, c.key, v) }) == c.not {
			return false
		}
	}
	return true
}

// matches reports whether a task has the value for the key.
func matches(t *Task, key, value string) bool {
	switch key {
	case "":
		return strings.Contains(strings.ToLower(t.Preview), strings.ToLower(value))
	case "agent":
		only, _ := OnlyAgent(t.Queue)
		return only == value || !t.State.Waiting() && t.Agent == value
	case "state":
		return string(t.State) == value || slices.Contains(stateWords[value], t.State)
	case "reason":
		return string(t.Reason) == value
	case "cause":
		return t.Cause == value
	case "queue":
		return t.Queue == value
	case "source":
		return string(t.Source) == value
	case "job":
		return t.SourceJob == value
	case "session":
		return t.SessionID == value
	case "mode":
		return string(t.Mode) == value || value == "queue" && t.Mode == ModeQueue
	case "tool":
		return t.Tool == value
	case "by":
		_, name, _ := strings.Cut(t.Owner, ":")
		return strings.EqualFold(t.OwnerEmail, value) || strings.EqualFold(t.Owner, value) || strings.EqualFold(name, value)
	case "id":
		return strings.HasPrefix(t.ID, value) || strings.HasSuffix(t.ID, value)
	}
	return false
}

// MatchesState reports whether the query may select a task in that state.
func (q *Query) MatchesState(s State) bool {
	for i := range q.clauses {
		c := &q.clauses[i]
		switch {
		case c.key == "state" && slices.ContainsFunc(c.values, func(v string) bool { return string(s) == v || slices.Contains(stateWords[v], s) }) == c.not:
			return false
		case c.key == "cause" && !c.not && s != Failed && s != Timeout:
			return false
		case c.key == "reason" && !c.not && !slices.ContainsFunc(c.values, func(v string) bool { return Reason(v).End() == s }):
			return false
		}
	}
	return true
}

// SingleValue returns the value of a key that all selected tasks share; "" if there is
// none or more than one.
func (q *Query) SingleValue(key string) string {
	for i := range q.clauses {
		if c := &q.clauses[i]; c.key == key && !c.not && len(c.values) == 1 {
			return c.values[0]
		}
	}
	return ""
}

// HasValue reports whether the query explicitly asks for a value of a key.
func (q *Query) HasValue(key, value string) bool {
	return slices.ContainsFunc(q.clauses, func(c clause) bool { return c.key == key && !c.not && slices.Contains(c.values, value) })
}

// Span returns the times between which the selected tasks ended, or were
// submitted if they have not ended; zero: no bound.
func (q *Query) Span() (since, until time.Time) { return q.since.at, q.until.at }

// Formatting of queries and of error messages about them.

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

// short cuts a caller's word for a message.
func short(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return s
}

// didYouMean suggests the known word that is most like a wrong one.
func didYouMean(typed string, known []string) string {
	best := Nearest(strings.ToLower(typed), known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// Nearest returns the known name that a misspelt one most likely means, at most
// two letters away; "" if none is that close.
func Nearest(typed string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(typed, k); k != "" && d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many letters must be changed, added or removed to turn one
// word into the other. For long words it is only a large number.
func distance(a, b string) int {
	const longest = 100
	if len(a) > longest || len(b) > longest {
		return longest
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
