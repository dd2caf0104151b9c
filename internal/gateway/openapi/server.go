package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"

	"github.com/getkin/kin-openapi/openapi3"
)

// hosts decides where the operations of a description go.
//
//	baseUrl set           there, whatever it is
//	the file says         there, but to no link-local or metadata address
//	the spec at a URL says  to its own host; to another one only in the public
//	                      network, and only if no headers are configured: they
//	                      may be secrets, and nobody said that they may go there
type hosts struct {
	base    *url.URL // of the configuration, or nil
	spec    *url.URL // of a description at a URL, or nil
	headers bool
}

func newHosts(c toolconf.OpenAPI, spec *url.URL) (*hosts, error) {
	h := &hosts{spec: spec, headers: len(c.Headers) > 0}
	if c.BaseURL == "" {
		return h, nil
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, errors.New("the baseUrl has to begin with http:// or https:// and a host")
	}
	h.base = u
	return h, nil
}

// reach is whom the tools may ask.
func (h *hosts) reach() rest.Reach {
	r := rest.Reach{Private: h.spec == nil}
	for _, u := range []*url.URL{h.base, h.spec} {
		if u != nil {
			r.Named = append(r.Named, u.Hostname())
		}
	}
	return r
}

// choose is the base of an operation that has these servers.
func (h *hosts) choose(servers openapi3.Servers) (*url.URL, error) {
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
		return nil, fmt.Errorf("the server %q is no URL: set baseUrl", rest.Cut(raw, 100))
	}
	if h.spec != nil {
		u = h.spec.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("the description does not say where its server is (%q): set baseUrl", rest.Cut(raw, 100))
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return u, h.check(u)
}

func (h *hosts) check(u *url.URL) error {
	if err := h.reach().Check(u.Hostname()); err != nil {
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

// withVariables is a server's URL with the defaults of its variables.
func withVariables(s *openapi3.Server) (string, error) {
	raw := s.URL
	for name, v := range s.Variables {
		if v != nil {
			raw = strings.ReplaceAll(raw, "{"+name+"}", v.Default)
		}
	}
	if strings.ContainsAny(raw, "{}") {
		return "", fmt.Errorf("the server %q has a variable without a default: set baseUrl", rest.Cut(raw, 100))
	}
	return raw, nil
}
