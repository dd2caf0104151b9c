package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"
)

const opening = "${parameters."

// template is a string with placeholders.
type template []part

// part is a piece of a template: literal, or the argument at a path.
type part struct {
	literal string
	path    []string // nil: literal
}

// parseText finds the placeholders in s. Other forms, ${x} or $x, are literal: they may mean
// something to the upstream.
func parseText(s string) (template, error) {
	var t template
	for {
		before, after, found := strings.Cut(s, opening)
		if before != "" {
			t = append(t, part{literal: before})
		}
		if !found {
			return t, nil
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%s%s is not closed: expected ${parameters.NAME}", opening, Truncate(after, 40))
		}
		path := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(name), ".")
		for _, p := range path {
			if p == "" || strings.ContainsAny(p, "{}/?#&=%$ \t\r\n\\") {
				return nil, fmt.Errorf("${parameters.%s} names no parameter: expected ${parameters.NAME} or ${parameters.NAME.NAME}", Truncate(name, 40))
			}
		}
		t = append(t, part{path: path})
		s = rest
	}
}

// singlePath is the path of the placeholder if t is a single placeholder,
// otherwise nil.
func (t template) singlePath() []string {
	if len(t) == 1 {
		return t[0].path
	}
	return nil
}

func (t template) hasTemplate() bool {
	for _, p := range t {
		if p.path != nil {
			return true
		}
	}
	return false
}

// fill inserts the arguments, each escaped by escape. where names the template in errors.
func (t template) fill(args map[string]any, where string, escape func(string) string) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.path == nil {
			b.WriteString(p.literal)
			continue
		}
		v, ok := lookup(args, p.path)
		if !ok || v == nil {
			return "", missing(p.path, where)
		}
		b.WriteString(escape(Text(v)))
	}
	return b.String(), nil
}

func missing(path []string, where string) error {
	name := strings.Join(path, ".")
	return signalbox.Invalid("arguments."+name, "the argument %s is missing: it is part of %s", name, where)
}

// lookup finds the argument at a path.
func lookup(args map[string]any, path []string) (any, bool) {
	var v any = args
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Text formats an argument: strings, numbers and booleans unchanged, everything else as
// JSON.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return string(EncodeJSON(v))
}

func same(s string) string { return s }

// Truncate shortens s to at most n bytes, for messages.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// urlTemplate is a URL whose path and query may have templates. Scheme, host
// and port are fixed.
type urlTemplate struct {
	origin *url.URL   // scheme, user and host
	path   []template // one per segment
	query  []pair
}

type pair struct {
	key, value template
	bare       bool // without "="
}

func parseURL(raw string) (*urlTemplate, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return nil, errors.New("the URL must begin with http:// or https://")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[:end], "${") {
		return nil, errors.New("the host and the port may not have a template: arguments must not choose the host")
	}
	origin, err := url.Parse(scheme + "://" + rest[:end])
	if err != nil || origin.Hostname() == "" {
		return nil, errors.New("the URL has no valid host") // the URL may contain a user's password
	}
	t := &urlTemplate{origin: origin}
	if strings.Contains(rest[end:], "#") {
		return nil, errors.New("a URL with a # is not sent whole: leave that part out, or write %23")
	}
	path, query, hasQuery := strings.Cut(rest[end:], "?")
	if path == "" {
		path = "/"
	}
	for s := range strings.SplitSeq(path[1:], "/") {
		segment, err := urlText(s)
		if err != nil {
			return nil, err
		}
		t.path = append(t.path, segment)
	}
	if !hasQuery {
		return t, nil
	}
	for s := range strings.SplitSeq(query, "&") {
		p, err := parsePair(s)
		if err != nil {
			return nil, err
		}
		t.query = append(t.query, p)
	}
	return t, nil
}

func parsePair(s string) (p pair, err error) {
	key, value, has := strings.Cut(s, "=")
	p.bare = !has
	if p.key, err = urlText(key); err == nil {
		p.value, err = urlText(value)
	}
	return p, err
}

func urlText(s string) (template, error) {
	t, err := parseText(s)
	for i, p := range t {
		t[i].literal = EscapeLiteral(p.literal)
	}
	return t, err
}

// fill makes the URL of one call.
func (t *urlTemplate) fill(args map[string]any) (string, error) {
	var b strings.Builder
	b.WriteString(t.origin.String())
	for _, s := range t.path {
		segment, err := s.fill(args, "the URL's path", Escape)
		if err != nil {
			return "", err
		}
		if s.hasTemplate() {
			if err := CheckSegment(segment, "the URL's path"); err != nil {
				return "", err
			}
		}
		b.WriteString("/" + segment)
	}
	mark := "?"
	for _, p := range t.query {
		pairs, err := p.fill(args)
		if err != nil {
			return "", err
		}
		for _, s := range pairs {
			b.WriteString(mark + s)
			mark = "&"
		}
	}
	return SameHost(t.origin, b.String())
}

// fill makes the pair. Without an argument that is its whole value, there is
// no pair; a list makes several.
func (p pair) fill(args map[string]any) ([]string, error) {
	key, err := p.key.fill(args, "the URL's query", Escape)
	if err != nil || p.bare {
		return []string{key}, err
	}
	whole := p.value.singlePath()
	if whole == nil {
		value, err := p.value.fill(args, "the URL's query", Escape)
		return []string{key + "=" + value}, err
	}
	v, _ := lookup(args, whole)
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var pairs []string
	for _, v := range list {
		pairs = append(pairs, key+"="+Escape(Text(v)))
	}
	return pairs, nil
}

// SameHost returns the URL if it still leads to the configured host. It is the last check
// before the request.
func SameHost(want *url.URL, finished string) (string, error) {
	u, err := url.Parse(finished)
	if err != nil {
		return "", signalbox.Invalid("arguments", "the arguments make no URL")
	}
	if u.Scheme != want.Scheme || u.Host != want.Host || u.User.String() != want.User.String() || u.Fragment != "" {
		return "", signalbox.Invalid("arguments", "the arguments lead to another host than %s", want.Host)
	}
	return finished, nil
}

const hex = "0123456789ABCDEF"

// Escape percent-encodes all but unreserved characters (RFC 3986, 2.3).
func Escape(s string) string {
	return escape(s, func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
	})
}

// EscapeLiteral encodes characters that are invalid in a URL, for configured
// text.
func EscapeLiteral(s string) string {
	return escape(s, func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"<>\\^`{|}", c) < 0 })
}

func escape(s string, keep func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; keep(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// CheckSegment returns why a path segment is refused: empty or dots would change the path.
// Slashes are encoded, but some servers decode them before they look for dots.
func CheckSegment(segment, where string) error {
	if segment == "" {
		return signalbox.Invalid("arguments", "an argument in %s is empty: the URL would be another one", where)
	}
	plain := strings.NewReplacer("%2E", ".", "%2e", ".", "%2F", "/", "%2f", "/", "%5C", "/", "%5c", "/").Replace(segment)
	for p := range strings.SplitSeq(plain, "/") {
		if p == "." || p == ".." {
			return signalbox.Invalid("arguments", "an argument in %s has the element %q: the URL would be another one", where, p)
		}
	}
	return nil
}

// reserved are headers of the connection, not of the request.
var reserved = []string{"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// CheckHeaderName returns why a header cannot be given to a request.
func CheckHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) {
		return fmt.Errorf("%q is not the name of a header", Truncate(name, 60))
	}
	if slices.Contains(reserved, http.CanonicalHeaderKey(name)) {
		return fmt.Errorf("a tool may not set the header %s", http.CanonicalHeaderKey(name))
	}
	return nil
}

// CheckHeaderValue returns why a value is not allowed in a header: a line end
// would begin another header.
func CheckHeaderValue(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return signalbox.Invalid("arguments", "the header %s would have a line end or another control character in it", name)
	}
	return nil
}
