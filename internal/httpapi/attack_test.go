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

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func host(name string) apitest.Edit { return func(r *http.Request) { r.Host = name } }

// A page at attacker.example makes its name resolve to 127.0.0.1 and sends requests.
func TestAttackDNSRebinding(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Addr, o.Config.Hosts = "127.0.0.1:8080", []string{"box.lan"} })
	for _, name := range []string{"attacker.example", "attacker.example:8080", "localhost.attacker.example", "127.0.0.1.nip.io:8080", "192.168.1.7:8080", "", "[::ffff:8.8.8.8]:80", "[::1%25lo].attacker.example", "[::1%lo]:8080"} {
		b.Do("GET", "/status", "", host(name)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, host(name)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	for _, name := range []string{"localhost", "LOCALHOST:9999", "localhost.:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "box.lan", "box.lan:8080", "Box.LAN."} {
		b.Do("GET", "/status", "", host(name)).Want(t, http.StatusOK, nil)
	}
	// A director on all interfaces is reached by address, which rebinding cannot use.
	all := apitest.New(t, func(o *apitest.Options) { o.Config.Addr, o.Config.Token = "0.0.0.0:8080", apitest.Secret })
	all.Do("GET", "/status", "", host("192.168.1.7:8080"), apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, nil)
	all.Do("GET", "/status", "", host("attacker.example"), apitest.Bearer(apitest.Secret)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// A page of another site makes the browser send requests that need no preflight.
func TestAttackCrossSite(t *testing.T) {
	b := apitest.New(t)
	form := apitest.Header("Content-Type", "application/x-www-form-urlencoded")
	text := apitest.Header("Content-Type", "text/plain")
	for name, edits := range map[string][]apitest.Edit{
		"a form":              {apitest.Header("Sec-Fetch-Site", "cross-site"), form},
		"a sibling site":      {apitest.Header("Sec-Fetch-Site", "same-site")},
		"fetch as text":       {apitest.Header("Sec-Fetch-Site", "cross-site"), text},
		"an old browser":      {apitest.Header("Origin", "https://attacker.example")},
		"an opaque origin":    {apitest.Header("Origin", "null")},
		"another port":        {apitest.Header("Origin", "http://127.0.0.1:9999")},
		"a preflighted fetch": {apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Origin", "https://attacker.example")},
	} {
		for _, path := range []string{"/api/queue/task", "/api/queue/pause", "/api/agents/coder/queue/release"} {
			if got := b.Do("POST", path, `{"prompt":"p"}`, edits...); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s reached %s: %d", name, path, got.StatusCode)
			}
		}
	}
	reads := map[string][]apitest.Edit{
		"an image":        {apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "no-cors")},
		"an EventSource":  {apitest.Header("Origin", "https://attacker.example"), apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "cors")},
		"an old browser":  {apitest.Header("Origin", "https://attacker.example")},
		"a local sandbox": {apitest.Header("Origin", "null")},
	}
	for name, edits := range reads {
		b.Do("GET", "/api/queue", "", edits...).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		if got := b.Do("OPTIONS", "/api/queue/task", "", edits...).Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s may read: %q", name, got)
		}
	}
	// Normal navigation stays possible.
	b.Do("GET", "/api/queue", "", apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "navigate")).Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, apitest.Header("Sec-Fetch-Site", "same-origin"), apitest.Header("Origin", "http://127.0.0.1:8080")).Want(t, http.StatusCreated, nil)
}

func TestWritesAreJSON(t *testing.T) {
	b := apitest.New(t)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/jsonp", "json"} {
		b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, apitest.Header("Content-Type", media)).WantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
		b.Do("POST", "/api/queue/"+id+"/cancel", "", apitest.Header("Content-Type", media)).WantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
		b.Do("DELETE", "/api/agents/coder", "", apitest.Header("Content-Type", media)).WantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, func(r *http.Request) { r.Header.Del("Content-Type") }).WantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, apitest.Header("Content-Type", "application/json; charset=UTF-8")).Want(t, http.StatusCreated, nil)
	b.Do("POST", "/api/queue/"+id+"/cancel", `{"force":true}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	b.Do("POST", "/api/queue/"+id+"/cancel", "").Want(t, http.StatusOK, nil)
}

// Every route except the public ones requires the token, and without it reveals nothing
// else.
func TestEveryRouteAsksForTheToken(t *testing.T) {
	b := apitest.New(t, apitest.WithToken, apitest.WithPages)
	for i, route := range api.Routes() {
		for name, edits := range map[string][]apitest.Edit{
			"no token": {}, "a wrong one": {apitest.Bearer(apitest.Secret + "x"), apitest.From("192.0.2.1:1")}, "a prefix": {apitest.Bearer(apitest.Secret[:8]), apitest.From("192.0.2.2:1")},
			"an empty one": {apitest.Bearer("")}, "basic": {apitest.Header("Authorization", "Basic "+apitest.Secret)}, "in the URL": {func(r *http.Request) { r.URL.RawQuery = "token=" + apitest.Secret }},
		} {
			if route.Scope == api.ScopeTicket || name == "in the URL" && route.Scope == api.ScopePublic {
				continue
			}
			// The table must not reach the limit for wrong tokens.
			addr := fmt.Sprintf("198.51.100.%d:1", i)
			got := b.Do(route.Method, sample(route.Path), "", append(edits, apitest.From(addr))...)
			if route.Scope == api.ScopePublic {
				if route.Request == nil { // the others require a body
					got.Want(t, route.Status, nil)
				}
				continue
			}
			e := got.WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
			if got.Header.Get("WWW-Authenticate") == "" || strings.Contains(string(got.Body), apitest.Secret[:8]) {
				t.Errorf("%s with %s: %+v", route.Name, name, e)
			}
		}
	}
	b.Do("GET", "/status", "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, nil)
	b.Do("GET", "/status", "", apitest.Header("Authorization", "bearer  "+apitest.Secret)).Want(t, http.StatusOK, nil)
}

// only makes a Keeper with only a static token.
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
		"0.0.0.0:8080": "", ":8080": "", "[::]:8080": "", "192.168.1.7:80": "", "box.lan:8080": "", "203.0.113.1:8080": "short", "8080": apitest.Secret, "localhost.evil.example:1": "",
	} {
		err := httpapi.CheckListen(addr, only(t, token))
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s with token %q: %v", addr, token, err)
		}
	}
	for addr, token := range map[string]string{"127.0.0.1:8080": "", "localhost:0": "", "[::1]:80": "", "127.1.2.3:1": "", "0.0.0.0:8080": apitest.Secret} {
		if err := httpapi.CheckListen(addr, only(t, token)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := httpapi.CheckListen("0.0.0.0:8080", only(t, "")); !strings.Contains(err.Error(), "without a token") || !strings.Contains(err.Error(), "SIGNALBOX_TOKEN") || !strings.Contains(err.Error(), "127.0.0.1:8080") {
		t.Errorf("no cure in %q", err)
	}
	b := apitest.New(t)
	if _, err := httpapi.New(httpapi.Config{Engine: b.Engine, Addr: "0.0.0.0:1"}); err == nil {
		t.Error("a public director without a token was made")
	}
	l := publicListener{}
	if err := b.Server.Serve(t.Context(), l); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Errorf("it serves on a public listener without a token: %v", err)
	}
}

type publicListener struct{ net.Listener }

func (publicListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 80} }

// An attacker that registers an agent would get prompts and their env.
func TestAttackRegisteringAnAgent(t *testing.T) {
	b, guarded := apitest.New(t), apitest.New(t, apitest.WithToken)
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
	b.Server.SetLookup(resolve)
	guarded.Server.SetLookup(resolve)
	body := func(url string) string { return fmt.Sprintf(`{"name":"coder","kind":"demo","url":%q}`, url) }
	from1, from2 := apitest.From("192.168.1.9:1"), apitest.Header("X-Forwarded-For", "203.0.113.1")
	b.Do("POST", "/api/agents", body("http://127.0.0.1:9000"), from1).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("POST", "/api/agents", body("http://127.0.0.1:9000"), from2).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	for _, url := range []string{"http://10.0.0.5:9000", "http://agents.lan:9000", "http://[fd00::5]:9000"} {
		b.Do("POST", "/api/agents", body(url)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if got := guarded.Do("POST", "/api/agents", body(url), apitest.Bearer(apitest.Secret), apitest.From("198.51.100.7:1")); got.StatusCode/100 != 2 {
			t.Errorf("a token does not vouch for %s: %s", url, got.Body)
		}
	}
	for _, url := range []string{
		"http://169.254.169.254/latest", "http://169.254.169.254:80", "http://[fe80::1]:80", "http://[fd00:ec2::254]:80", "http://100.100.100.200:80",
		"http://[::ffff:169.254.169.254]:80", "http://[64:ff9b::a9fe:a9fe]:80", "http://0.0.0.0:80", "http://[::]:80", "http://224.0.0.1:80",
		"http://meta.evil:80", "http://rebind.evil:80", "http://unknown.evil:80", "ftp://127.0.0.1", "http://user:pw@127.0.0.1:9000", "http://127.0.0.1:9000?x=1", "//", "", "http://",
	} {
		guarded.Do("POST", "/api/agents", body(url), apitest.Bearer(apitest.Secret)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		b.Do("POST", "/api/agents", body(url)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	b.Do("POST", "/api/agents", body("http://localhost:9000")).Want(t, http.StatusCreated, nil)
}

// A host name that resolves to this host at the registration and elsewhere later is not
// accepted.
func TestAttackAnAgentWhoseNameMoves(t *testing.T) {
	b, guarded := apitest.New(t), apitest.New(t, apitest.WithToken)
	here := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	b.Server.SetLookup(here)
	guarded.Server.SetLookup(here)
	body := func(host string) string {
		return fmt.Sprintf(`{"name":"coder","kind":"demo","url":"http://%s:9000"}`, host)
	}
	for _, name := range []string{"moving.evil", "localhost.evil", "2130706433", "0x7f.1", "localhost.localdomain"} {
		e := b.Do("POST", "/api/agents", body(name)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if !strings.Contains(e.Message, "needs a token") || e.Hint == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, name := range []string{"localhost", "LOCALHOST.", "127.0.0.1", "[::1]"} {
		if got := b.Do("POST", "/api/agents", body(name)); got.StatusCode/100 != 2 {
			t.Errorf("%s: %s", name, got.Body)
		}
	}
	guarded.Do("POST", "/api/agents", body("moving.lan"), apitest.Bearer(apitest.Secret)).Want(t, http.StatusCreated, nil)
}

// A body that was announced as too large was requested nevertheless.
func TestBodyAnnouncedTooLargeIsNotRead(t *testing.T) {
	b := apitest.New(t)
	read := false
	body := readerFunc(func([]byte) (int, error) { read = true; return 0, io.EOF })
	b.Do("POST", "/api/queue/task", "{}", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(body), 1<<20+1 }).
		WantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	if read {
		t.Error("the body was read")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestAttackSizes(t *testing.T) {
	b := apitest.New(t)
	b.Do("POST", "/api/queue/task", `{"prompt":"`+strings.Repeat("a", 1<<20)+`"}`).WantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	b.Do("GET", "/api/history?q="+strings.Repeat("a", 9000), "").WantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	b.Do("POST", "/api/queue/task", `{"prompt":`+deep+`}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	e := b.Do("POST", "/api/queue/task", strings.Repeat(`{"env":`, 33)+"1"+strings.Repeat("}", 33)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	if !strings.Contains(e.Message, "nested too deep") {
		t.Errorf("%+v", e)
	}
	b.Do("GET", "/api/find/"+strings.Repeat("a", 65), "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}
