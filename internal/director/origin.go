package director

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// hostList says under which names the director may be asked. A page of
// another site can make its own name point to this address (DNS rebinding);
// then it sends that name, which is not on the list.
type hostList struct {
	names map[string]bool
	// anyIP allows every address in digits: bound to all interfaces, the
	// director is reached under addresses that it does not know, and a
	// rebinding attack needs a name.
	anyIP bool
}

func newHostList(addr string, extra []string) hostList {
	l := hostList{names: map[string]bool{"localhost": true}}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		ip, err := netip.ParseAddr(host)
		l.anyIP = host == "" || (err == nil && ip.IsUnspecified())
		if host != "" {
			l.names[plainHost(host)] = true
		}
	}
	for _, name := range extra {
		l.names[plainHost(name)] = true
	}
	return l
}

func (l hostList) check(hostport string) error {
	host := plainHost(hostport)
	if l.names[host] {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" && (l.anyIP || ip.Unmap().IsLoopback()) {
		return nil
	}
	return refuse(signalbox.CodeForbidden, "ask under a loopback name, or add the name to hosts in the director's configuration",
		"the director does not answer under the name %q", clip(hostport))
}

// plainHost is a host without port, brackets and the dot at the end, in
// lower case.
func plainHost(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// checkOrigin refuses what a page of another site makes a browser send:
// writes by http.CrossOriginProtection, and reads that are no navigation,
// whose answers that page could not read but whose streams it could hold
// open.
func (d *Director) checkOrigin(r *http.Request) error {
	foreign := d.cross.Check(r) != nil
	if !foreign && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		foreign = r.Header.Get("Sec-Fetch-Site") == "cross-site" || foreignOrigin(r)
	}
	if foreign {
		return refuse(signalbox.CodeForbidden, "pages of other sites may not use the director; ask from a program, or from the director's own pages",
			"the request comes from a page of another site")
	}
	return nil
}

func foreignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host // "null" has no host
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// checkMedia asks writes for JSON. A form, which any page can make a browser
// send, is refused even without a body.
func checkMedia(r *http.Request) error {
	if !isWrite(r) {
		return nil
	}
	given := r.Header.Values("Content-Type")
	if len(given) == 0 && !hasBody(r) {
		return nil
	}
	if len(given) == 1 {
		media, params, err := mime.ParseMediaType(given[0])
		charset := strings.ToLower(params["charset"])
		if err == nil && media == "application/json" && (charset == "" || charset == "utf-8") {
			return nil
		}
	}
	if len(given) == 0 {
		return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the body has no content type; it must be application/json")
	}
	return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the content type must be application/json, not %q", clip(strings.Join(given, ", ")))
}
