package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// A dev server on another port of the host receives the cookie of a user who is
// logged in to the pages and opens it. Neither its page nor its program can use
// the cookie.
func TestACookieOfAnotherPortIsWorthNothing(t *testing.T) {
	b := newBox(t)
	director := b.director()
	var mu sync.Mutex
	var seen string
	dev := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("signalbox_login"); err == nil {
			mu.Lock()
			seen = c.Value
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>a dev server</p>"))
	}))
	defer dev.Close()
	p := b.ownWindow(director.url).tab("/ui/")
	p.live()
	key := has[string](p, `localStorage.getItem("signalbox-login")`)
	p.allow("Failed to load resource", "blocked by CORS", "Access to fetch")
	p.w.url = dev.URL
	p.goTo("/")
	mu.Lock()
	cookie := seen
	mu.Unlock()
	if cookie == "" {
		t.Fatal("the browser did not show the cookie to the other port: the attack is none")
	}
	if has[bool](p, `localStorage.getItem("signalbox-login") !== null`) {
		t.Error("the other port's page has the key of the login")
	}
	// Requests that its page makes the browser send are refused as well.
	has[bool](p, `(fetch("`+director.url+`/api/queue", {credentials: "include"}).then(() => { window.asked = "read"; }, () => { window.asked = "refused"; }), true)`)
	p.until("the page has asked", "window.asked")
	if got := has[string](p, "window.asked"); got != "refused" {
		t.Errorf("the queue to the page: %s", got)
	}
	for name, headers := range map[string][]string{
		"the cookie alone":            nil,
		"with a key that is none":     {"Signalbox-Login", strings.Repeat("x", len(key))},
		"with the cookie as the key":  {"Signalbox-Login", cookie},
		"with the cookie as a token":  {"Authorization", "Bearer " + cookie},
		"with the key as a token too": {"Authorization", "Bearer " + key},
	} {
		for _, path := range []string{"/api/me", "/api/tokens", "/api/queue", "/status"} {
			req, _ := http.NewRequestWithContext(b.ctx(), http.MethodGet, director.url+path, nil)
			req.AddCookie(&http.Cookie{Name: "signalbox_login", Value: cookie})
			if len(headers) > 0 {
				req.Header.Set(headers[0], headers[1])
			}
			resp, err := stranger.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s answers %d", name, path, resp.StatusCode)
			}
		}
	}
	// The login needs both halves, and still works after the attack.
	req, _ := http.NewRequestWithContext(b.ctx(), http.MethodGet, director.url+"/api/me", nil)
	req.AddCookie(&http.Cookie{Name: "signalbox_login", Value: cookie})
	req.Header.Set("Signalbox-Login", key)
	resp, err := stranger.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var me api.Me
	if err := json.NewDecoder(resp.Body).Decode(&me); err != nil || resp.StatusCode != http.StatusOK || me.ID != "static" {
		t.Errorf("the login itself: %d %+v %v", resp.StatusCode, me, err)
	}
}

// A login link works once.
func TestALoginLinkWorksOnce(t *testing.T) {
	b := newBox(t)
	director := b.director()
	link := b.loginLink(director.url)
	p := b.window(director.url).tab(link)
	p.until("the owner is there", `location.pathname === "/ui/"`)
	p.live()
	p.showsIn(".top", "owner")
	if has[bool](p, `location.href.includes("once")`) {
		t.Error("the code stays in the address")
	}
	again := b.window(director.url).tab(link)
	again.allow("401")
	again.showsIn("main", "used already")
}
