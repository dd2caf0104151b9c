package mcp

import (
	"net/url"
	"testing"
)

// TestSameOrigin: the same scheme, host and port, or https if http is
// configured.
func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		configured, asked string
		own               bool
	}{
		{"http://h/mcp", "http://H:80/other?x", true},
		{"http://h/mcp", "https://h/mcp", true},
		{"http://h/mcp", "https://h:443/mcp", true},
		{"https://h/mcp", "https://h:443/mcp", true},
		{"ws://h/mcp", "http://h/mcp", true},
		{"ws://h/mcp", "wss://h/mcp", true},
		{"wss://h:8443/mcp", "https://h:8443/mcp", true},
		{"http://[::1]:9/mcp", "http://[::1]:9/mcp", true},
		{"https://h/mcp", "http://h/mcp", false},
		{"wss://h/mcp", "http://h/mcp", false},
		{"http://h:8080/mcp", "https://h:8080/mcp", false},
		{"http://h:8080/mcp", "https://h/mcp", false},
		{"http://h/mcp", "https://h:8443/mcp", false},
		{"http://h/mcp", "http://h:8080/mcp", false},
		{"http://h/mcp", "http://h.example/mcp", false},
		{"http://h/mcp", "http://169.254.169.254/latest", false},
		{"http://h/mcp", "http://h@169.254.169.254/", false},
		{"http://h/mcp", "ftp://h/mcp", false},
	} {
		origin, _ := url.Parse(c.configured)
		asked, _ := url.Parse(c.asked)
		if got := (&web{origin: origin}).sameOrigin(asked); got != c.own {
			t.Errorf("%s for %s: %v", c.asked, c.configured, got)
		}
	}
}
