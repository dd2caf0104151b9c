package toolconf

import (
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

var placeholder = regexp.MustCompile(`\$\{parameters\.([^}.\[]*)[^}]*\}`)

// isParameter reports whether a placeholder is filled in by a call.
func isParameter(inner string) bool { return strings.HasPrefix(inner, "parameters.") }

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

var (
	method     = rule{want: "one of " + strings.Join(methods, ", "), ok: func(s string) bool { return slices.Contains(methods, strings.ToUpper(s)) }}
	urlForm    = rule{want: notEmpty.want, ok: notEmpty.ok, secret: true, keep: isParameter}
	headerForm = rule{want: headerVal.want, ok: headerVal.ok, secret: true, keep: isParameter}
	tagName    = rule{want: "a tag", ok: notEmpty.ok}
	toolPrefix = rule{want: "at most 32 letters, digits, underscores or hyphens", ok: func(s string) bool { return s == "" || len(s) <= 32 && entryForm.MatchString(s) }}
)

func (r *reader) rest(name string, s *section) func() {
	if !entryName(name) {
		s.problem(s.line, s.key, wantEntryName)
	}
	t := RestTool{Name: name, Method: "GET", Where: r.where(s.line)}
	s.text(&t.Method, method, "method")
	t.Method = strings.ToUpper(t.Method)
	s.text(&t.Description, rule{want: "a text", keep: isParameter}, "description")
	r.filled = nil
	s.template(&t.URL)
	r.filled = besidesPlace(t.URL, r.filled)
	s.table(&t.Headers, headerKey, headerForm, "headers")
	parameters := s.argumentsSchema()
	t.Parameters = parameters.text
	if pair, key, ok := s.take("bodyTemplate"); ok {
		t.BodyTemplate = s.json(pair.Value, key, func(n *conffile.Node) string {
			text, _, _ := s.fill(n, key, isParameter)
			return text
		})
	}
	t.Secrets = r.filled
	s.timeout(&t.Timeout)
	s.queueOf(&t.Queue)
	return func() {
		before := len(r.merge.problems)
		if s.parameters(t, parameters); len(r.merge.problems) == before {
			add(r.merge, r.merge.rest, t, t.Name, keyRest, "another tool")
		}
	}
}

// besidesPlace removes the values that are part of a URL's host or path, because
// answers may contain those. Values in its query, and passwords, are secret.
func besidesPlace(url string, values []string) []string {
	place, _, _ := strings.Cut(url, "?")
	if scheme, rest, ok := strings.Cut(place, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		place = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
	}
	return slices.DeleteFunc(values, func(v string) bool { return strings.Contains(place, strings.TrimRight(v, "/")) })
}

// template reads the URL. Its host is fixed: otherwise a model could make the
// gateway call any host that the gateway can reach.
func (s *section) template(to *string) {
	pair, given := s.given("url")
	if !given {
		s.problem(s.line, s.key, "it has no url: want the one that it calls")
	}
	s.text(to, urlForm, "url")
	scheme, host, _ := strings.Cut(*to, "://")
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	switch {
	case *to == "": // already reported
	case strings.Contains(scheme, "${parameters.") || strings.Contains(host, "${parameters."):
		s.problem(pair.Line, s.key+".url", "want a scheme and host without parameters: a call may only fill in what comes after")
	case !validURL(scheme+"://"+host, "http", "https"):
		s.problem(pair.Line, s.key+".url", "want a URL such as https://api.example.com/search?q=${parameters.query}, got another text")
	}
}

func (s *section) json(n *conffile.Node, key string, fill func(*conffile.Node) string) []byte {
	out, err := conffile.ToJSON(n, fill)
	if err != nil {
		line := n.Line
		if bad, ok := errors.AsType[*conffile.Error](err); ok && bad.Line > 0 {
			line = bad.Line
		}
		s.problem(line, key, err.Error())
	}
	return out
}

// parameters checks that the templates use only parameters of the schema.
func (s *section) parameters(t RestTool, parameters schema) {
	texts := slices.AppendSeq([]string{t.URL, string(t.BodyTemplate)}, maps.Values(t.Headers))
	var missing []string
	for _, m := range placeholder.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		if !parameters.knows(m[1]) {
			missing = append(missing, m[1])
		}
	}
	slices.Sort(missing)
	for _, name := range slices.Compact(missing) {
		s.odd(s.line, s.key, "a template names the parameter "+shownName(name)+", which parametersSchema does not have")
	}
}

func (r *reader) openapi(name string, s *section) func() {
	s.provider(name)
	o := OpenAPI{Name: name, Where: r.where(s.line)}
	s.spec(&o.Spec)
	if s.text(&o.BaseURL, notEmpty, "baseUrl"); o.BaseURL != "" && !validURL(o.BaseURL, "http", "https") {
		s.problem(s.pairs["baseUrl"].Line, s.key+".baseUrl", "want a URL such as https://api.example.com/v1, got another text")
	}
	r.filled = nil
	s.table(&o.Headers, headerKey, headerVal, "headers")
	o.Secrets = r.filled
	var words []string
	s.texts(&words, method, "includeMethods")
	for _, m := range words {
		if m = strings.ToUpper(m); !slices.Contains(o.IncludeMethods, m) {
			o.IncludeMethods = append(o.IncludeMethods, m)
		}
	}
	s.texts(&o.TagFilter, tagName, "tagFilter")
	s.text(&o.ToolNamePrefix, toolPrefix, "toolNamePrefix")
	s.timeout(&o.Timeout)
	s.queueOf(&o.Queue)
	s.queuesOf(&o.ToolQueues)
	return func() { r.merge.addOpenAPI(o) }
}

// spec reads the location of the description: a URL, or a path relative to this file.
func (s *section) spec(to *string) {
	pair, given := s.given("spec")
	if !given {
		s.problem(s.line, s.key, "it has no spec: want the file or URL of its description")
	}
	s.text(to, notEmpty, "spec")
	u, err := url.Parse(*to)
	switch {
	case *to == "": // already reported
	case err == nil && (u.Scheme == "http" || u.Scheme == "https"):
		if u.Hostname() == "" {
			s.problem(pair.Line, s.key+".spec", "want a file, or a URL such as https://api.example.com/openapi.json, got another text")
		}
	case err == nil && u.Scheme == "file":
		*to = s.path(u.Path)
	default:
		*to = s.path(*to)
	}
}
