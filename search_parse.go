package signalbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ParseQuery parses a query of at most MaxQueryBytes. Errors are CodeValidation
// for the field q and name the wrong word.
func ParseQuery(text string, now time.Time) (Query, error) {
	p := queryParser{rest: text, now: now}
	switch {
	case len(text) > MaxQueryBytes:
		return Query{}, wrong("a query has at most %d bytes, not %d", MaxQueryBytes, len(text))
	case !utf8.ValidString(text):
		return Query{}, wrong("the query is not valid UTF-8")
	case strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) >= 0:
		return Query{}, wrong("the query holds a character that cannot be printed")
	}
	for p.rest = trimSpace(p.rest); p.rest != ""; p.rest = trimSpace(p.rest) {
		if err := p.word(); err != nil {
			return Query{}, err
		}
	}
	slices.SortStableFunc(p.q.clauses, func(a, b clause) int {
		return cmp.Or(slices.Index(queryKeys, a.key)-slices.Index(queryKeys, b.key), cmp.Compare(boolNumber(a.not), boolNumber(b.not)))
	})
	return p.q, nil
}

func wrong(format string, args ...any) error { return Invalid("q", format, args...) }

func trimSpace(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }

func boolNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

type queryParser struct {
	rest string
	now  time.Time
	q    Query
}

// word reads one word: key:value, a text in quotes, or a bare text.
func (p *queryParser) word() error {
	begin := p.rest
	not := len(p.rest) > 1 && p.rest[0] == '-' && trimSpace(p.rest[1:]) == p.rest[1:]
	if not {
		p.rest = p.rest[1:]
	}
	if p.rest[0] == '"' {
		text, err := p.quoted()
		if err == nil && text != "" {
			p.add("", not, text)
		}
		return err
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return r == ':' || r == '"' || unicode.IsSpace(r) })
	if end <= 0 || p.rest[end] != ':' {
		text := p.rest
		if end := strings.IndexFunc(p.rest, unicode.IsSpace); end >= 0 {
			text = p.rest[:end]
		}
		p.rest = p.rest[len(text):]
		p.add("", not, text)
		return nil
	}
	key := strings.ToLower(p.rest[:end])
	p.rest = p.rest[end+1:]
	values, err := p.values()
	if err != nil {
		return err
	}
	return p.condition(key, not, values, begin[:len(begin)-len(p.rest)])
}

// values reads what follows a key.
func (p *queryParser) values() (values []string, err error) {
	for {
		var v string
		if strings.HasPrefix(p.rest, `"`) {
			if v, err = p.quoted(); err != nil {
				return nil, err
			}
		} else {
			end := strings.IndexFunc(p.rest, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
			if end < 0 {
				end = len(p.rest)
			}
			v, p.rest = p.rest[:end], p.rest[end:]
		}
		values = append(values, v)
		if !strings.HasPrefix(p.rest, ",") {
			return values, nil
		}
		p.rest = p.rest[1:]
	}
}

// quoted reads a text in quotes. A backslash escapes a quote or a backslash.
func (p *queryParser) quoted() (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			if p.rest != "" && p.rest[0] != ',' && len(trimSpace(p.rest)) == len(p.rest) {
				return "", wrong("put a space behind the text in quotes %q", b.String())
			}
			return b.String(), nil
		case c == '\\' && i+1 < len(p.rest) && (p.rest[i+1] == '"' || p.rest[i+1] == '\\'):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", wrong("the quote before %q has no end: put another one behind the text", short(p.rest[1:]))
}

// condition adds a key with its values.
func (p *queryParser) condition(key string, not bool, values []string, word string) error {
	if key == "" || !slices.Contains(queryKeys, key) {
		return wrong("%q is no key in %s%s: the keys are %s; put a text with a colon in quotes",
			short(key), short(word), didYouMean(key, queryKeys), strings.Join(keyList(), ", "))
	}
	if slices.Contains(values, "") {
		return wrong("%s: a value is missing behind the key %s", short(word), key)
	}
	switch key {
	case "since", "until", "older":
		return p.moment(key, not, values, word)
	case "cause":
		for i, v := range values {
			if values[i] = strings.ToLower(v); len(v) != causeLength || strings.Trim(values[i], "0123456789abcdef") != "" {
				return wrong("%s: %q is no cause: it is the %d hexadecimal digits that a failed task shows as its cause", short(word), short(v), causeLength)
			}
		}
	case "queue":
		for _, v := range values {
			if !ValidQueue(v) {
				return wrong("%s: %q is not a queue: use work, commands, calls, agent:NAME, pool:KIND or bypass:NAME", short(word), short(v))
			}
		}
	}
	known := queryValues[key]
	for i, v := range values {
		if known == nil {
			continue
		}
		values[i] = strings.ToLower(v)
		if !slices.Contains(known, values[i]) {
			return wrong("%s: %q is no %s%s: use %s", short(word), short(v), key, didYouMean(v, known), strings.Join(known, ", "))
		}
	}
	p.add(key, not, values...)
	return nil
}

func keyList() []string {
	list := slices.DeleteFunc(slices.Clone(queryKeys), func(k string) bool { return k == "" })
	slices.Sort(list)
	return list
}

// add adds a condition and merges it with others of the same key.
func (p *queryParser) add(key string, not bool, values ...string) {
	if key != "" {
		for i := range p.q.clauses {
			if c := &p.q.clauses[i]; c.key == key && c.not == not {
				c.add(values)
				return
			}
		}
	}
	c := clause{key: key, not: not}
	c.add(values)
	p.q.clauses = append(p.q.clauses, c)
}

func (c *clause) add(values []string) {
	for _, v := range values {
		if !slices.Contains(c.values, v) {
			c.values = append(c.values, v)
		}
	}
}

// moment adds a time.
func (p *queryParser) moment(key string, not bool, values []string, word string) error {
	into := map[string]*moment{"since": &p.q.since, "until": &p.q.until, "older": &p.q.older}[key]
	switch {
	case not:
		return wrong("%s: a minus has no meaning before %s: turn since and until around", short(word), key)
	case len(values) > 1 || into.word != "":
		return wrong("%s: %s can be given once", short(word), key)
	}
	at, ok := p.time(values[0])
	if !ok || at.IsZero() { // the zero time would mean no bound

		return wrong("%s: %q is no time: use an age such as 90m, 2h or 7d, a day such as 2026-01-31, or a time such as 2026-01-31T10:00:00Z", short(word), short(values[0]))
	}
	*into = moment{values[0], at}
	return nil
}

func (p *queryParser) time(s string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.UTC(), true
	}
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at, true
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return p.now.Add(-time.Duration(n) * 24 * time.Hour), err == nil && n >= 0 && n <= 36500
	}
	age, err := time.ParseDuration(s)
	return p.now.Add(-age), err == nil && age >= 0
}
