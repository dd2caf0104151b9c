package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

const secret = "correct-horse-battery-staple"

func withToken(o *options) { o.director.Token = secret }

func bearer(token string) edit { return header("Authorization", "Bearer "+token) }

func host(name string) edit { return func(r *http.Request) { r.Host = name } }

// A page at attacker.example lets its name point to 127.0.0.1 and asks.
func TestAttackDNSRebinding(t *testing.T) {
	b := newBox(t, func(o *options) { o.director.Addr, o.director.Hosts = "127.0.0.1:8080", []string{"box.lan"} })
	for _, name := range []string{"attacker.example", "attacker.example:8080", "localhost.attacker.example", "127.0.0.1.nip.io:8080", "192.168.1.7:8080", "", "[::ffff:8.8.8.8]:80", "[::1%25lo].attacker.example", "[::1%lo]:8080"} {
		b.do("GET", "/status", "", host(name)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		b.do("POST", "/api/queue/task", `{"prompt":"p"}`, host(name)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	for _, name := range []string{"localhost", "LOCALHOST:9999", "localhost.:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "box.lan", "box.lan:8080", "Box.LAN."} {
		b.do("GET", "/status", "", host(name)).want(t, http.StatusOK, nil)
	}
	// Bound to all interfaces it is asked by address, which rebinding cannot use.
	all := newBox(t, func(o *options) { o.director.Addr, o.director.Token = "0.0.0.0:8080", secret })
	all.do("GET", "/status", "", host("192.168.1.7:8080"), bearer(secret)).want(t, http.StatusOK, nil)
	all.do("GET", "/status", "", host("attacker.example"), bearer(secret)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// A page of another site makes the browser send what needs no preflight.
func TestAttackCrossSite(t *testing.T) {
	b := newBox(t)
	form := header("Content-Type", "application/x-www-form-urlencoded")
	text := header("Content-Type", "text/plain")
	for name, edits := range map[string][]edit{
		"a form":              {header("Sec-Fetch-Site", "cross-site"), form},
		"a sibling site":      {header("Sec-Fetch-Site", "same-site")},
		"fetch as text":       {header("Sec-Fetch-Site", "cross-site"), text},
		"an old browser":      {header("Origin", "https://attacker.example")},
		"an opaque origin":    {header("Origin", "null")},
		"another port":        {header("Origin", "http://127.0.0.1:9999")},
		"a preflighted fetch": {header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://attacker.example")},
	} {
		for _, path := range []string{"/api/queue/task", "/api/queue/pause", "/api/agents/coder/queue/release"} {
			if got := b.do("POST", path, `{"prompt":"p"}`, edits...); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s reached %s: %d", name, path, got.StatusCode)
			}
		}
	}
	reads := map[string][]edit{
		"an image":        {header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "no-cors")},
		"an EventSource":  {header("Origin", "https://attacker.example"), header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "cors")},
		"an old browser":  {header("Origin", "https://attacker.example")},
		"a local sandbox": {header("Origin", "null")},
	}
	for name, edits := range reads {
		b.do("GET", "/api/queue", "", edits...).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		if got := b.do("OPTIONS", "/api/queue/task", "", edits...).Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s may read: %q", name, got)
		}
	}
	// What people do stays possible.
	b.do("GET", "/api/queue", "", header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")).want(t, http.StatusOK, nil)
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, header("Sec-Fetch-Site", "same-origin"), header("Origin", "http://127.0.0.1:8080")).want(t, http.StatusCreated, nil)
}

func TestWritesAreJSON(t *testing.T) {
	b := newBox(t)
	id := b.submit(`{"prompt":"p"}`).QueueID
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/jsonp", "json"} {
		b.do("POST", "/api/queue/task", `{"prompt":"p"}`, header("Content-Type", media)).wantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
		b.do("POST", "/api/queue/"+id+"/cancel", "", header("Content-Type", media)).wantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
		b.do("DELETE", "/api/agents/coder", "", header("Content-Type", media)).wantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, func(r *http.Request) { r.Header.Del("Content-Type") }).wantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, header("Content-Type", "application/json; charset=UTF-8")).want(t, http.StatusCreated, nil)
	b.do("POST", "/api/queue/"+id+"/cancel", `{"force":true}`).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	b.do("POST", "/api/queue/"+id+"/cancel", "").want(t, http.StatusOK, nil)
}

// Every route but the public ones is closed without the token, and says no
// more than that.
func TestEveryRouteAsksForTheToken(t *testing.T) {
	b := newBox(t, withToken, withPages)
	for i, route := range api.Routes() {
		for name, edits := range map[string][]edit{
			"no token": {}, "a wrong one": {bearer(secret + "x"), from("192.0.2.1:1")}, "a prefix": {bearer(secret[:8]), from("192.0.2.2:1")},
			"an empty one": {bearer("")}, "basic": {header("Authorization", "Basic "+secret)}, "in the URL": {func(r *http.Request) { r.URL.RawQuery = "token=" + secret }},
		} {
			if route.Scope == api.ScopeTicket || name == "in the URL" && route.Scope == api.ScopePublic {
				continue
			}
			// The table must not run into the limit on wrong tokens.
			addr := fmt.Sprintf("198.51.100.%d:1", i)
			got := b.do(route.Method, sample(route.Path), "", append(edits, from(addr))...)
			if route.Scope == api.ScopePublic {
				if route.Request == nil { // the others ask for a body
					got.want(t, route.Status, nil)
				}
				continue
			}
			e := got.wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
			if got.Header.Get("WWW-Authenticate") == "" || strings.Contains(string(got.body), secret[:8]) {
				t.Errorf("%s with %s: %+v", route.Name, name, e)
			}
		}
	}
	b.do("GET", "/status", "", bearer(secret)).want(t, http.StatusOK, nil)
	b.do("GET", "/status", "", header("Authorization", "bearer  "+secret)).want(t, http.StatusOK, nil)
}

// Guessing a token that can be guessed is slowed down, even if a guess is
// right; others are not disturbed, and the address is free again later.
func TestAttackGuessingTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, withToken)
		there := from("203.0.113.9:1000")
		for i := range httpapi.BadBurst {
			b.do("GET", "/status", "", bearer(fmt.Sprint("guess", i)), there).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
		}
		got := b.do("GET", "/status", "", bearer(secret), from("203.0.113.9:2000"))
		got.wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
		if got.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		b.do("GET", "/status", "", bearer(secret), from("203.0.113.10:1")).want(t, http.StatusOK, nil)
		time.Sleep(httpapi.BadRefill)
		b.do("GET", "/status", "", bearer(secret), there).want(t, http.StatusOK, nil)
		// A caller has the whole /64 of its IPv6 address to choose from.
		for i := range httpapi.BadBurst {
			b.do("GET", "/status", "", bearer("guess"), from(fmt.Sprintf("[2001:db8::%d]:1", i+1)))
		}
		b.do("GET", "/status", "", bearer(secret), from("[2001:db8::ffff]:1")).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	})
}

// only knows a static token and nobody else.
func only(t *testing.T, token string) *identity.Keeper {
	t.Helper()
	k, err := identity.New(t.Context(), nil, identity.Options{Static: token})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAttackPublicWithoutAToken(t *testing.T) {
	for addr, token := range map[string]string{
		"0.0.0.0:8080": "", ":8080": "", "[::]:8080": "", "192.168.1.7:80": "", "box.lan:8080": "", "203.0.113.1:8080": "short", "8080": secret, "localhost.evil.example:1": "",
	} {
		err := httpapi.CheckListen(addr, only(t, token))
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s with token %q: %v", addr, token, err)
		}
	}
	for addr, token := range map[string]string{"127.0.0.1:8080": "", "localhost:0": "", "[::1]:80": "", "127.1.2.3:1": "", "0.0.0.0:8080": secret} {
		if err := httpapi.CheckListen(addr, only(t, token)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := httpapi.CheckListen("0.0.0.0:8080", only(t, "")); !strings.Contains(err.Error(), "without a token") || !strings.Contains(err.Error(), "SIGNALBOX_TOKEN") || !strings.Contains(err.Error(), "127.0.0.1:8080") {
		t.Errorf("no cure in %q", err)
	}
	b := newBox(t)
	if _, err := httpapi.New(httpapi.Config{Engine: b.engine, Addr: "0.0.0.0:1"}); err == nil {
		t.Error("a public director without a token was made")
	}
	l := publicListener{}
	if err := b.dir.Serve(t.Context(), l); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Errorf("it serves on a public listener without a token: %v", err)
	}
}

type publicListener struct{ net.Listener }

func (publicListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 80} }

// Whoever registers an agent gets prompts and their env.
func TestAttackRegisteringAnAgent(t *testing.T) {
	b, guarded := newBox(t), newBox(t, withToken)
	resolve := func(_ context.Context, host string) ([]netip.Addr, error) {
		if ip, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{ip}, nil
		}
		known := map[string][]netip.Addr{
			"localhost":   {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")},
			"agents.lan":  {netip.MustParseAddr("10.0.0.5")},
			"rebind.evil": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")},
			"meta.evil":   {netip.MustParseAddr("169.254.169.254")},
		}
		if ips := known[host]; ips != nil {
			return ips, nil
		}
		return nil, errors.New("no such host")
	}
	b.dir.SetLookup(resolve)
	guarded.dir.SetLookup(resolve)
	body := func(url string) string { return fmt.Sprintf(`{"name":"coder","kind":"demo","url":%q}`, url) }
	from1, from2 := from("192.168.1.9:1"), header("X-Forwarded-For", "203.0.113.1")
	b.do("POST", "/api/agents", body("http://127.0.0.1:9000"), from1).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("POST", "/api/agents", body("http://127.0.0.1:9000"), from2).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	for _, url := range []string{"http://10.0.0.5:9000", "http://agents.lan:9000", "http://[fd00::5]:9000"} {
		b.do("POST", "/api/agents", body(url)).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if got := guarded.do("POST", "/api/agents", body(url), bearer(secret), from("198.51.100.7:1")); got.StatusCode/100 != 2 {
			t.Errorf("a token does not vouch for %s: %s", url, got.body)
		}
	}
	for _, url := range []string{
		"http://169.254.169.254/latest", "http://169.254.169.254:80", "http://[fe80::1]:80", "http://[fd00:ec2::254]:80", "http://100.100.100.200:80",
		"http://[::ffff:169.254.169.254]:80", "http://[64:ff9b::a9fe:a9fe]:80", "http://0.0.0.0:80", "http://[::]:80", "http://224.0.0.1:80",
		"http://meta.evil:80", "http://rebind.evil:80", "http://unknown.evil:80", "ftp://127.0.0.1", "http://user:pw@127.0.0.1:9000", "http://127.0.0.1:9000?x=1", "//", "", "http://",
	} {
		guarded.do("POST", "/api/agents", body(url), bearer(secret)).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		b.do("POST", "/api/agents", body(url)).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	b.do("POST", "/api/agents", body("http://localhost:9000")).want(t, http.StatusCreated, nil)
}

// A name that leads to this host while the agent registers, and elsewhere when
// it is asked, vouches for nothing.
func TestAttackAnAgentWhoseNameMoves(t *testing.T) {
	b, guarded := newBox(t), newBox(t, withToken)
	here := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	b.dir.SetLookup(here)
	guarded.dir.SetLookup(here)
	body := func(host string) string {
		return fmt.Sprintf(`{"name":"coder","kind":"demo","url":"http://%s:9000"}`, host)
	}
	for _, name := range []string{"moving.evil", "localhost.evil", "2130706433", "0x7f.1", "localhost.localdomain"} {
		e := b.do("POST", "/api/agents", body(name)).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if !strings.Contains(e.Message, "no token vouches") || e.Hint == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, name := range []string{"localhost", "LOCALHOST.", "127.0.0.1", "[::1]"} {
		if got := b.do("POST", "/api/agents", body(name)); got.StatusCode/100 != 2 {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	guarded.do("POST", "/api/agents", body("moving.lan"), bearer(secret)).want(t, http.StatusCreated, nil)
}

// A body that was announced as too large was asked for all the same.
func TestBodyAnnouncedTooLargeIsNotRead(t *testing.T) {
	b := newBox(t)
	read := false
	body := readerFunc(func([]byte) (int, error) { read = true; return 0, io.EOF })
	b.do("POST", "/api/queue/task", "{}", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(body), 1<<20+1 }).
		wantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	if read {
		t.Error("the body was read")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestAttackSizes(t *testing.T) {
	b := newBox(t)
	b.do("POST", "/api/queue/task", `{"prompt":"`+strings.Repeat("a", 1<<20)+`"}`).wantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	b.do("GET", "/api/history?q="+strings.Repeat("a", 9000), "").wantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	b.do("POST", "/api/queue/task", `{"prompt":`+deep+`}`).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	e := b.do("POST", "/api/queue/task", strings.Repeat(`{"env":`, 33)+"1"+strings.Repeat("}", 33)).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	if !strings.Contains(e.Message, "nested too deep") {
		t.Errorf("%+v", e)
	}
	b.do("GET", "/api/find/"+strings.Repeat("a", 65), "").wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}
