package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// doctorOf runs doctor and expects an exit code.
func (b *box) doctorOf(code int, args ...string) string {
	b.t.Helper()
	return b.want(code, append([]string{"doctor"}, args...)...).out
}

// Doctor finds problems of a real director from outside: a buffering proxy
// and an agent whose clock is off. When the director is down, it inspects the
// data that it left.
func TestDoctor(t *testing.T) {
	b := newBox(t)
	d := b.director()
	b.vars["SIGNALBOX_ADDR"] = "127.0.0.1:0" // another process may use the default port
	b.agent("coder", d.url)
	said := b.doctorOf(0, "--director", d.url)
	for _, part := range []string{"durability disk", "its rows agree", "the director may open", "the clock of the director's host was not set", "agents: asked: 1", "events arrive one by one"} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), strings.ReplaceAll(part, "agents: ", "agents ")) {
			t.Errorf("want %q in\n%s", part, said)
		}
	}
	// The proxy is named explicitly: so is its token, and it cannot prove that it knows that.
	b.vars["SIGNALBOX_TOKEN"], b.vars["SIGNALBOX_PROOF"] = b.token(), "off"
	to, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(passing(to, false))
	t.Cleanup(plain.Close)
	if said := b.doctorOf(0, "--director", plain.URL); !strings.Contains(said, "events arrive one by one") {
		t.Errorf("a proxy that passes all on at once:\n%s", said)
	}
	holding := httptest.NewServer(passing(to, true))
	t.Cleanup(holding.Close)
	if said := b.doctorOf(1, "--director", holding.URL); !strings.Contains(said, "fail  events    events are late") {
		t.Errorf("a proxy that holds events back:\n%s", said)
	}
	var held atomic.Bool
	once := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/live" && !held.Swap(true) {
			holding.Config.Handler.ServeHTTP(w, r)
			return
		}
		plain.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(once.Close)
	if said := b.doctorOf(0, "--director", once.URL); !strings.Contains(said, "events arrive one by one") || !held.Load() {
		t.Errorf("events that were late once, as on a busy machine:\n%s", said)
	}
	late := fakeStatus(t, -time.Hour)
	if _, err := b.client(d.url).RegisterAgent(b.ctx(), api.RegisterAgent{Name: "late", Kind: "other", URL: late}); err != nil {
		t.Fatal(err)
	}
	if said := b.doctorOf(8, "--director", d.url); !strings.Contains(said, "the clock of agent late is -59m") && !strings.Contains(said, "the clock of agent late is -1h0m0s") {
		t.Errorf("an agent whose clock is an hour late:\n%s", said)
	}
	d.stop()
	if said := b.doctorOf(1, "--director", d.url, "--json"); !strings.Contains(said, `"area": "director"`) {
		t.Errorf("without a director:\n%s", said)
	}
	if said := b.doctorOf(0, "--data", b.data); !strings.Contains(said, "its rows agree") || !strings.Contains(said, "every page of") {
		t.Errorf("what the director left:\n%s", said)
	}
}

// passing is a proxy; with hold it buffers a response until it is complete or has
// 4 MiB.
func passing(to *url.URL, hold bool) http.Handler {
	p := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	if hold {
		p.ModifyResponse = func(r *http.Response) error {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
				r.Body = &held{from: r.Body}
			}
			return nil
		}
	}
	return p
}

// held is a body that is delivered only at its end.
type held struct {
	from io.ReadCloser
	all  *bytes.Reader
}

func (h *held) Read(b []byte) (int, error) {
	if h.all == nil {
		data, err := io.ReadAll(io.LimitReader(h.from, 4<<20))
		if err != nil {
			return 0, err
		}
		h.all = bytes.NewReader(data)
	}
	return h.all.Read(b)
}

func (h *held) Close() error { return h.from.Close() }

// fakeStatus is a third-party agent whose clock is off.
func fakeStatus(t *testing.T, off time.Duration) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"agent","state":"idle","version":"7","agent_kind":"other"}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// What up created for its own agents has no problems.
func TestDoctorOfANewUp(t *testing.T) {
	b := newBox(t)
	b.up()
	b.want(0, "submit", "--wait", "say hello")
	if got := b.cli("doctor"); strings.Contains(got.out, "fail ") {
		t.Errorf("doctor says %d:\n%s", got.code, got.out)
	}
}
