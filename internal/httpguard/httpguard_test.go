package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/httpguard"
)

func TestHosts(t *testing.T) {
	near, far := httpguard.NewHosts(false, "Box.Internal", "10.0.0.7"), httpguard.NewHosts(true)
	for host, want := range map[string][2]bool{
		"localhost": {true, true}, "LOCALHOST.:80": {true, true}, "127.0.0.1:8080": {true, true}, "[::1]:8080": {true, true}, "[::ffff:127.0.0.1]": {true, true},
		"box.internal:1": {true, false}, "10.0.0.7": {true, true}, "10.0.0.8:80": {false, true}, "evil.example": {false, false},
		"[::1%evil.example]": {false, false}, "": {false, false},
	} {
		if got := [2]bool{near.Allow(host), far.Allow(host)}; got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestSameToken(t *testing.T) {
	for header, want := range map[string]bool{
		"Bearer secret": true, "bearer  secret ": true, "Bearer secrets": false, "Basic secret": false, "secret": false, "": false, "Bearer ": false,
	} {
		if httpguard.SameToken(header, "secret") != want {
			t.Errorf("%q: not %v", header, want)
		}
	}
}

func TestUnmatched(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /task", func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		method, path, allow string
		none                bool
	}{{"POST", "/task", "", false}, {"GET", "/task", "POST", true}, {"POST", "/other", "", true}} {
		allow, none := httpguard.Unmatched(mux, httptest.NewRequest(c.method, c.path, nil))
		if allow != c.allow || none != c.none {
			t.Errorf("%s %s: %q, %v", c.method, c.path, allow, none)
		}
	}
}
