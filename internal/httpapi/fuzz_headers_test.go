package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// FuzzCursors checks that a cursor is parsed as it was written, or refused with a short
// message.
func FuzzCursors(f *testing.F) {
	for _, s := range []string{"", "MTczNzEwODAwMDAwMC4x", "e30", "cGFzdDo", "bGl2ZTox", "%", "AA==", strings.Repeat("A", 4000), "eyJwIjoicnVubmluZyJ9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		refused := func(err error) bool {
			if err != nil && (signalbox.CodeOf(err) != signalbox.CodeValidation || len(err.Error()) > 1000) {
				t.Fatalf("%q is refused with %d bytes: %v", s, len(err.Error()), err)
			}
			return err != nil
		}
		if c, err := parseCursor(s); !refused(err) && s != "" && formatCursor(c) != s {
			t.Fatalf("%q is read as %+v", s, c)
		}
		if p, ok := store.ParseScanCursor(s, ""); ok && s != "" && p.String() != s {
			t.Fatalf("%q is read as %+v", s, p)
		}
		live, past, err := parseActivityCursor(s)
		if !refused(err) && (live < 0 || (live > 0 && past != nil)) {
			t.Fatalf("%q is read as %d, %v", s, live, past)
		}
	})
}

// FuzzHeaders checks that headers are understood or ignored, and never weaken a rule: waits
// have limits, bodies must be JSON, and foreign host names and pages of other sites are
// refused.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"respond-async", "wait=5", "wait=99999999999, respond-async", `wait="3"; a=b`, "wait=-1", "application/json; charset=utf-8", "application/json, text/plain", "text/plain", "application/json;charset=utf-16", "127.0.0.1:8080", "localhost", "evil.test",
		"[::1]:8080", "127.0.0.1.evil.test", "0x7f.1", "http://evil.test", "null", "bytes=0-", "wait=5;wait=6",
	} {
		f.Add(s)
	}
	names := hostsOf("127.0.0.1:8080", []string{"director.test"})
	f.Fuzz(func(t *testing.T, s string) {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/api/queue/task", strings.NewReader("{}"))
		r.Header["Prefer"], r.Header["Content-Type"] = []string{s}, []string{s}
		p := preferOf(r)
		if p.wait < 0 || p.wait > 1<<31*time.Second || p.maxWait() < 0 {
			t.Fatalf("%q: %+v", s, p)
		}
		if httpio.CheckMedia(r) == nil && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(s)), "application/json") {
			t.Fatalf("%q is taken for JSON", s)
		}
		if names.Allow(s) {
			host, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), ":") // the rest is not part of the host
			if strings.Contains(host, "evil") {
				t.Fatalf("the director answers under %q", s)
			}
		}
	})
}
