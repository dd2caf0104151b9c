package doctor_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/doctor"
)

func TestHost(t *testing.T) {
	got := doctor.Host(time.Now())(t.Context(), true)
	if len(got) < 2 || !strings.Contains(got[0].Text, "the director may open") || got[len(got)-1].Area != "clock" {
		t.Errorf("%+v", got)
	}
	for most, want := range map[uint64]string{100: "fail", 1024: "warn", 65536: "ok", 1 << 63: "ok"} {
		if c := doctor.FilesCheck(most); c.State != want || (c.Cure == "") != (want == "ok") {
			t.Errorf("%d files: %+v, want %s", most, c, want)
		}
	}
	for _, c := range []struct {
		used, most uint64
		want       string
	}{{10, 100, "ok"}, {91, 100, "warn"}, {100, 100, "fail"}, {0, 0, "fail"}} {
		if got := doctor.Bounds(c.used, c.most); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.used, c.most, got, c.want)
		}
	}
	for _, c := range []struct {
		all, free uint64
		want      string
	}{{0, 0, ""}, {1 << 20, 1 << 19, ""}, {1 << 20, 500, "warn"}, {1 << 20, 3, "fail"}} {
		if got, _ := doctor.Inodes("it", c.all, c.free); got.State != c.want {
			t.Errorf("%d of %d inodes free: %q, want %q", c.free, c.all, got.State, c.want)
		}
	}
}

// If calendar time and real time differ, the clock was set.
func TestSetClockIsReported(t *testing.T) {
	for said, want := range map[time.Duration]string{
		time.Hour: "ok", time.Hour + time.Second: "ok", 50 * time.Minute: "was set back by 10m0s", 2 * time.Hour: "is 1h0m0s ahead",
	} {
		c := doctor.Clock(time.Hour, said)
		if ok := c.State == "ok"; ok != (want == "ok") || ok != (c.Cure == "") || (!ok && !strings.Contains(c.Text, want)) {
			t.Errorf("an hour went by, the calendar says %s: %+v, want %s", said, c, want)
		}
	}
}

func TestOffset(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	at := func(d time.Duration) string { return sent.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		date string
		want time.Duration
	}{
		{"", 0}, {"yesterday", 0}, {at(0), 0}, {at(-500 * time.Millisecond), 0}, {at(100 * time.Millisecond), 0},
		{at(time.Hour), time.Hour - 700*time.Millisecond}, {at(-time.Hour), -time.Hour + 500*time.Millisecond},
	} {
		if got := doctor.Offset(c.date, sent, 200*time.Millisecond); got != c.want {
			t.Errorf("%q: %s, want %s", c.date, got, c.want)
		}
	}
}

// fakeAgent answers GET /status with a wrong clock.
func fakeAgent(t *testing.T, s api.AgentStatus, off time.Duration, token string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.Type, s.State = "agent", "idle"
		_ = json.NewEncoder(w).Encode(s)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestAgents(t *testing.T) {
	look := func(admin bool, rows ...signalbox.Agent) []api.Check {
		return doctor.Agents(doctor.Fleet{
			Agents:  func(context.Context) ([]signalbox.Agent, error) { return rows, nil },
			Token:   func(a signalbox.Agent) (string, error) { return string(a.SealedToken), nil },
			Version: "1.2.0",
		})(t.Context(), admin)
	}
	good := signalbox.Agent{Name: "good", URL: fakeAgent(t, api.AgentStatus{Name: "good", Version: "1.2.0", WorkDir: "/a"}, 0, "sesame"), SealedToken: []byte("sesame")}
	want(t, look(true, good), "ok agents: asked: 1; their clocks, versions and folders are fine")
	want(t, look(false, good)) // it names all agents
	old := signalbox.Agent{Name: "old", URL: fakeAgent(t, api.AgentStatus{Name: "old", Version: "1.1.0", WorkDir: "/b"}, 0, "")}
	foreign := signalbox.Agent{Name: "foreign", URL: fakeAgent(t, api.AgentStatus{Version: "7"}, 0, "")}
	want(t, look(true, good, old, foreign), `warn agents: agent old has version "1.1.0", this director "1.2.0"`)
	twin := signalbox.Agent{Name: "twin", URL: strings.Replace(fakeAgent(t, api.AgentStatus{Version: "1.2.0", WorkDir: "/a"}, 0, ""), "127.0.0.1", "localhost", 1)}
	want(t, look(true, good, twin), "warn agents: agents good and twin work in one folder, on the director's host in /a")
	late := signalbox.Agent{Name: "late", URL: fakeAgent(t, api.AgentStatus{}, -time.Hour, "")}
	got := said(look(true, late))
	// An HTTP date omits fractions of a second, which may be zero.
	if len(got) != 1 || !regexp.MustCompile(`^warn clock: the clock of agent late is (-59m59|-59m58|-1h0m0).*s off the director's$`).MatchString(got[0]) {
		t.Errorf("%q", got)
	}
	gone := signalbox.Agent{Name: "gone", URL: "http://127.0.0.1:1"}
	cloud := signalbox.Agent{Name: "cloud", URL: "http://169.254.169.254"}
	want(t, look(true, gone, cloud, signalbox.Agent{Name: "pulls"})) // the dispatcher reports that they are down
}
