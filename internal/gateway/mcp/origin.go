package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

const maxRedirects = 5

var errNoAddress = errors.New("a redirect without an address")

// elsewhere is why nothing is sent to an address: the arguments of a call and
// our headers are meant for the server that the configuration names.
func elsewhere(what string, u *url.URL) error {
	return fmt.Errorf("%s to %s://%s, another host than the configured one, which is not asked: if that is right, put the new address into the configuration", what, u.Scheme, u.Host)
}

// own reports whether an address is of the configured origin, or of the same
// host by https instead of http.
func (w *web) own(u *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), w.origin.Hostname()) {
		return false
	}
	scheme, configured := plainScheme(u.Scheme), plainScheme(w.origin.Scheme)
	if scheme == configured {
		return port(u) == port(w.origin)
	}
	return configured == "http" && scheme == "https" && port(w.origin) == "80" && port(u) == "443"
}

// plainScheme takes the handshake of a WebSocket for the HTTP request it is.
func plainScheme(s string) string {
	switch s {
	case "ws":
		return "http"
	case "wss":
		return "https"
	}
	return s
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[plainScheme(u.Scheme)]
}

// astray says why a redirect is not followed, if it is not.
func (w *web) astray(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil {
		return errNoAddress
	}
	if !w.own(to) {
		return elsewhere("a redirect", to)
	}
	if m := resp.Request.Method; m != http.MethodGet && !keepsMethod(resp.StatusCode) {
		return fmt.Errorf("a redirect (HTTP %s) that would turn %s into GET, which is not followed: put the new address into the configuration", statusText(resp.StatusCode), m)
	}
	hops := 1
	for before := resp.Request.Response; before != nil; before = before.Request.Response {
		hops++
	}
	if hops > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// sentAway is the fault of a call that was answered with a redirect which is
// not followed.
func (w *web) sentAway(why error) *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with %s.", w.tap.name, printable(w.tap.mask.hide(why.Error())))
}

func keepsMethod(status int) bool {
	return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return true
	}
	return keepsMethod(status)
}
