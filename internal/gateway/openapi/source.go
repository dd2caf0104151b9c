package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Limits of a description. They bound the cost of a hostile one.
const (
	maxBytes = 8 << 20 // including all that it refers to
	maxFiles = 200
)

// source is the location of a description. It limits what the description may
// reference.
type source struct {
	ctx    context.Context
	where  *url.URL // URL of the description; nil: it is a file
	file   string   // otherwise its absolute path
	client *rest.Client
	header http.Header
	read   map[string][]byte
	bytes  int
}

func newSource(ctx context.Context, c toolconf.OpenAPI) (*source, error) {
	s := &source{ctx: ctx, read: map[string][]byte{}}
	if !strings.Contains(c.Spec, "://") {
		s.file = filepath.Clean(c.Spec)
		return s, nil
	}
	u, err := url.Parse(c.Spec)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the spec must be a file or a URL that begins with http:// or https://")
	}
	s.where = u
	s.client = rest.NewClient(rest.EgressPolicy{Named: []string{u.Hostname()}})
	s.header = http.Header{"Accept": {"application/json, application/yaml, text/yaml, */*;q=0.5"}}
	if base, err := url.Parse(c.BaseURL); err == nil && sameOrigin(base, u) {
		for name, value := range c.Headers { // they are meant for this host only
			s.header.Set(name, value)
		}
	}
	return s, nil
}

func (s *source) close() {
	if s.client != nil {
		s.client.Close()
	}
}

// location is the URL of the description itself.
func (s *source) location() *url.URL {
	if s.where != nil {
		return s.where
	}
	return &url.URL{Path: filepath.ToSlash(s.file)}
}

// open reads the description, or a document that it refers to, as JSON.
func (s *source) open(u *url.URL) ([]byte, error) {
	if s.where != nil {
		u = s.where.ResolveReference(u) // handles "/x" and "//host/x" as in any URL
	}
	key := u.String()
	if data, ok := s.read[key]; ok {
		return data, nil
	}
	if len(s.read) >= maxFiles {
		return nil, fmt.Errorf("it refers to more than %d files", maxFiles)
	}
	data, err := s.fetch(u)
	if err != nil {
		return nil, err
	}
	if s.bytes += len(data); s.bytes > maxBytes {
		return nil, errTooLarge
	}
	if data, err = toJSON(data); err != nil {
		if u.Path != s.location().Path {
			err = fmt.Errorf("%s: %w", filepath.Base(u.Path), err)
		}
		return nil, err
	}
	s.read[key] = data
	return data, nil
}

var errTooLarge = fmt.Errorf("it is larger than %d MiB with all that it refers to", maxBytes>>20)

func (s *source) fetch(u *url.URL) ([]byte, error) {
	switch {
	case s.where != nil && !sameOrigin(u, s.where):
		return nil, fmt.Errorf("it refers to %s, which is not read: references may lead to %s://%s only", redactedURL(u), s.where.Scheme, s.where.Host)
	case s.where != nil:
		return s.fetchURL(u)
	case u.Host != "" || u.Scheme != "" && u.Scheme != "file":
		return nil, fmt.Errorf("it refers to %s, which is not read: the references of a file may lead to files beside it only", redactedURL(u))
	}
	return s.readFile(filepath.FromSlash(u.Path))
}

func (s *source) fetchURL(u *url.URL) ([]byte, error) {
	a, err := s.client.Do(s.ctx, &rest.Request{Method: http.MethodGet, URL: u.String(), Header: s.header}, maxBytes)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("%s answered with status %d", redactedURL(u), a.Status)
	}
	return a.Body, nil
}

// readFile reads the description, or a file in its folder or below. Symbolic
// links cannot lead out of the folder.
func (s *source) readFile(path string) ([]byte, error) {
	if path == s.file {
		return readRegular(os.Open(path)) //nolint:gosec // the configuration names this file
	}
	folder := filepath.Dir(s.file)
	inside, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("it refers to the file %s, which is not read: references may lead to files in %s only", rest.Truncate(path, 200), folder)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	if info, err := root.Stat(inside); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", inside) // reading a pipe would block
	}
	return readRegular(root.Open(inside))
}

func readRegular(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", f.Name())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = errTooLarge
	}
	return data, err
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// redactedURL is a URL without the parts that may be secret.
func redactedURL(u *url.URL) string {
	p := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return rest.Truncate(p.String(), 200)
}

// hostPolicy decides to which hosts the operations of a description go.
//
//	baseUrl set           there, whatever it is
//	the file says         there, but to no link-local or metadata address
//	the spec at a URL says  to its own host; to another host only in the public
//	                      network, and only if no headers are configured: they
//	                      may be secrets that are not meant for it
type hostPolicy struct {
	base    *url.URL // from the configuration, or nil
	spec    *url.URL // URL of the description, or nil
	headers bool
}

func newHosts(c toolconf.OpenAPI, spec *url.URL) (*hostPolicy, error) {
	h := &hostPolicy{spec: spec, headers: len(c.Headers) > 0}
	if c.BaseURL == "" {
		return h, nil
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, errors.New("the baseUrl must begin with http:// or https:// and a host")
	}
	h.base = u
	return h, nil
}

// egress is the policy for the tools' requests.
func (h *hostPolicy) egress() rest.EgressPolicy {
	r := rest.EgressPolicy{Private: h.spec == nil}
	for _, u := range []*url.URL{h.base, h.spec} {
		if u != nil {
			r.Named = append(r.Named, u.Hostname())
		}
	}
	return r
}

// choose returns the base URL of an operation with these servers.
func (h *hostPolicy) choose(servers openapi3.Servers) (*url.URL, error) {
	if h.base != nil {
		return h.base, nil
	}
	raw := "/"
	if len(servers) > 0 && servers[0] != nil {
		var err error
		if raw, err = withVariables(servers[0]); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the server %q is not a URL: set baseUrl", rest.Truncate(raw, 100))
	}
	if h.spec != nil {
		u = h.spec.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("the description does not say where its server is (%q): set baseUrl", rest.Truncate(raw, 100))
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return u, h.check(u)
}

func (h *hostPolicy) check(u *url.URL) error {
	if err := h.egress().Check(u.Hostname()); err != nil {
		return fmt.Errorf("the description names the server %s: %w; if it is right, set baseUrl", u.Host, err)
	}
	if h.spec == nil || !h.headers {
		return nil
	}
	if !strings.EqualFold(u.Hostname(), h.spec.Hostname()) || h.spec.Scheme == "https" && u.Scheme == "http" {
		return fmt.Errorf("the description at %s names the server %s://%s: set baseUrl to say that the configured headers may go there", h.spec.Host, u.Scheme, u.Host)
	}
	return nil
}

// withVariables is a server's URL with its variables set to their defaults.
func withVariables(s *openapi3.Server) (string, error) {
	raw := s.URL
	for name, v := range s.Variables {
		if v != nil {
			raw = strings.ReplaceAll(raw, "{"+name+"}", v.Default)
		}
	}
	if strings.ContainsAny(raw, "{}") {
		return "", fmt.Errorf("the server %q has a variable without a default: set baseUrl", rest.Truncate(raw, 100))
	}
	return raw, nil
}
