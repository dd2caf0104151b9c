package rest

import (
	"errors"
	"net/url"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"
)

// urlTemplate is a URL whose path and query have templates. Scheme, host and
// port are fixed.
type urlTemplate struct {
	origin *url.URL // scheme, user and host
	path   []text   // by segments
	query  []pair
}

type pair struct {
	key, value text
	bare       bool // without "="
}

func parseURL(raw string) (*urlTemplate, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return nil, errors.New("the URL has to begin with http:// or https://")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[:end], "${") {
		return nil, errors.New("a template may not stand in the host or the port: what the caller gives must not choose who is asked")
	}
	origin, err := url.Parse(scheme + "://" + rest[:end])
	if err != nil || origin.Hostname() == "" {
		return nil, errors.New("the URL has no valid host") // without the URL: a user's password may stand in it
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

func urlText(s string) (text, error) {
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

// fill makes the pair: none without an argument that is all of its value,
// several of a list.
func (p pair) fill(args map[string]any) ([]string, error) {
	key, err := p.key.fill(args, "the URL's query", Escape)
	if err != nil || p.bare {
		return []string{key}, err
	}
	whole := p.value.whole()
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

// SameHost returns the finished URL if it still leads where the configuration
// says. Nothing that stands before it should let another one pass; it is the
// last look before the request is made.
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
