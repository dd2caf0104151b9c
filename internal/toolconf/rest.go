package toolconf

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

var (
	restName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	placeholder = regexp.MustCompile(`\$\{parameters\.([^}.\[]*)[^}]*\}`)
)

// isParameter keeps what a call fills in.
func isParameter(inner string) bool { return strings.HasPrefix(inner, "parameters.") }

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

var method = rule{want: "one of " + strings.Join(methods, ", "), ok: func(s string) bool { return slices.Contains(methods, strings.ToUpper(s)) }}

func (r *reader) rest(name string, s *section) {
	before := len(r.merge.problems)
	if !restName.MatchString(name) {
		s.problem(s.line, s.key, "want 1 to 64 letters, digits, underscores or hyphens as its name")
	}
	t := RestTool{Name: name, Method: strings.ToUpper(s.text(method, "method")), Where: r.where(s.line)}
	t.Method = cmp.Or(t.Method, "GET")
	t.Description = s.text(rule{want: "a text", keep: isParameter}, "description")
	r.filled = nil
	t.URL = s.template()
	r.filled = besidesPlace(t.URL, r.filled)
	value := headerVal
	value.keep = isParameter
	t.Headers = s.table(headerKey, value, "headers")
	t.Parameters = s.schema()
	t.BodyTemplate = s.body()
	t.Secrets = r.filled
	t.Timeout = s.timeout()
	t.Queue = s.binding()
	s.finish(foreignRest)
	if len(r.merge.problems) > before {
		return
	}
	s.parameters(&t)
	if len(r.merge.problems) == before {
		r.merge.addRest(t)
	}
}

// besidesPlace leaves out the values of variables that say where a URL leads:
// answers may name that. What stands in its query, or is a password, is secret.
func besidesPlace(url string, values []string) []string {
	place, _, _ := strings.Cut(url, "?")
	if scheme, rest, ok := strings.Cut(place, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		place = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
	}
	return slices.DeleteFunc(values, func(v string) bool { return strings.Contains(place, strings.TrimRight(v, "/")) })
}

// template reads the URL. Its host is fixed: a model that could choose it
// could make the gateway call anything that the gateway can reach.
func (s *section) template() string {
	pair, given := s.given("url")
	text := s.text(rule{want: notEmpty.want, ok: notEmpty.ok, secret: true, keep: isParameter}, "url")
	switch {
	case !given:
		s.problem(s.line, s.key, "it has no url: want the one that it calls")
	case text == "": // it has been reported
	default:
		scheme, rest, _ := strings.Cut(text, "://")
		host := rest
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			host = rest[:i]
		}
		switch {
		case strings.Contains(scheme, "${parameters.") || strings.Contains(host, "${parameters."):
			s.problem(pair.Line, s.key+".url", "want a scheme and host without parameters: a call may only fill in what comes after")
		case !validURL(scheme+"://"+host, "http", "https"):
			s.problem(pair.Line, s.key+".url", "want a URL such as https://api.example.com/search?q=${parameters.query}, got another text")
		}
	}
	return text
}

// schema reads the JSON Schema of the arguments, as it is written.
func (s *section) schema() []byte {
	pair, key, ok := s.take("parametersSchema")
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "a JSON Schema of an object", false)
		return nil
	}
	out := s.json(pair.Value, key, nil)
	var schema struct {
		Type any `json:"type"`
	}
	if out != nil && (json.Unmarshal(out, &schema) != nil || schema.Type != nil && schema.Type != "object") {
		s.problem(pair.Value.Line, key+".type", "want object: the arguments of a tool are one")
	}
	return out
}

func (s *section) body() []byte {
	pair, key, ok := s.take("bodyTemplate")
	if !ok {
		return nil
	}
	return s.json(pair.Value, key, func(n *conffile.Node) string {
		text, _, _ := s.fill(n, key, isParameter)
		return text
	})
}

func (s *section) json(n *conffile.Node, key string, fill func(*conffile.Node) string) []byte {
	out, err := conffile.ToJSON(n, fill)
	if err != nil {
		line := n.Line
		if bad, ok := errors.AsType[*conffile.Error](err); ok && bad.Line > 0 {
			line = bad.Line
		}
		s.problem(line, key, err.Error())
		return nil
	}
	return out
}

// parameters checks that the templates name parameters that there are.
func (s *section) parameters(t *RestTool) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil || schema.Properties == nil {
		return
	}
	texts := []string{t.URL, string(t.BodyTemplate)}
	for _, value := range t.Headers {
		texts = append(texts, value)
	}
	var missing []string
	for _, m := range placeholder.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		if _, ok := schema.Properties[m[1]]; !ok && !slices.Contains(missing, m[1]) {
			missing = append(missing, m[1])
		}
	}
	slices.Sort(missing)
	for _, name := range missing {
		s.odd(s.line, s.key, "a template names the parameter "+shownName(name)+", which parametersSchema does not have")
	}
}

var toolPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}$`)

func (r *reader) openapi(name string, s *section) {
	before := len(r.merge.problems)
	s.provider(name)
	o := OpenAPI{Name: name, Where: r.where(s.line)}
	o.Spec = s.spec()
	if o.BaseURL = s.text(notEmpty, "baseUrl"); o.BaseURL != "" && !validURL(o.BaseURL, "http", "https") {
		s.problem(s.pairs["baseUrl"].Line, s.key+".baseUrl", "want a URL such as https://api.example.com/v1, got another text")
	}
	r.filled = nil
	o.Headers = s.table(headerKey, headerVal, "headers")
	o.Secrets = r.filled
	for _, m := range s.texts(method, "includeMethods") {
		if m = strings.ToUpper(m); !slices.Contains(o.IncludeMethods, m) {
			o.IncludeMethods = append(o.IncludeMethods, m)
		}
	}
	o.TagFilter = s.texts(rule{want: "a tag", ok: notEmpty.ok}, "tagFilter")
	o.ToolNamePrefix = s.text(rule{want: "at most 32 letters, digits, underscores or hyphens", ok: toolPrefix.MatchString}, "toolNamePrefix")
	o.Timeout = s.timeout()
	o.Queue = s.binding()
	o.ToolQueues = s.toolBindings()
	s.finish(foreignRest)
	if len(r.merge.problems) == before {
		r.merge.addOpenAPI(o)
	}
}

// spec reads where the description is: a URL, or a file relative to the one
// that names it.
func (s *section) spec() string {
	pair, given := s.given("spec")
	text := s.text(notEmpty, "spec")
	switch u, err := url.Parse(text); {
	case !given:
		s.problem(s.line, s.key, "it has no spec: want the file or URL of its description")
		return ""
	case text == "": // it has been reported
		return ""
	case err == nil && (u.Scheme == "http" || u.Scheme == "https"):
		if u.Hostname() == "" {
			s.problem(pair.Line, s.key+".spec", "want a file, or a URL such as https://api.example.com/openapi.json, got another text")
		}
		return text
	case err == nil && u.Scheme == "file":
		return s.path(u.Path)
	}
	return s.path(text)
}
