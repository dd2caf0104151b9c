package toolconf

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

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
