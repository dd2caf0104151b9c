package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"
)

const hex = "0123456789ABCDEF"

// Escape percent-encodes all that is not unreserved in a URL (RFC 3986, 2.3),
// so that the result has no meaning there but itself.
func Escape(s string) string {
	return escape(s, func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
	})
}

// EscapeLiteral encodes what may not stand in a URL at all, for what the
// configuration wrote itself.
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

// CheckSegment returns why a filled segment of a path may not be sent: one
// that is empty or made of dots would make the path another one. Slashes are
// encoded, but servers exist that decode them before they look for dots.
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

// reserved are headers that belong to the connection, not to the request.
var reserved = []string{"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// CheckHeaderName returns why a header cannot be given to a request.
func CheckHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) {
		return fmt.Errorf("%q is no name of a header", Cut(name, 60))
	}
	if slices.Contains(reserved, http.CanonicalHeaderKey(name)) {
		return fmt.Errorf("the header %s is not a tool's to set", http.CanonicalHeaderKey(name))
	}
	return nil
}

// CheckHeaderValue returns why a value cannot stand in a header: a line end
// in it would begin another one.
func CheckHeaderValue(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return signalbox.Invalid("arguments", "the header %s would have a line end or another control character in it", name)
	}
	return nil
}
