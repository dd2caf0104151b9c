package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/signalbox-ai/signalbox/api"
)

// owners are the home folders of the boxes. With them a request gets the
// token of its director, as on the owner's command line.
var owners struct {
	sync.Mutex
	homes map[string]bool
}

func addOwner(home string) (remove func()) {
	owners.Lock()
	defer owners.Unlock()
	if owners.homes == nil {
		owners.homes = map[string]bool{}
	}
	owners.homes[home] = true
	return func() {
		owners.Lock()
		defer owners.Unlock()
		delete(owners.homes, home)
	}
}

// ownerToken is the token of the director or scheduler at host, which one of
// the boxes runs or restarts after a kill; "" if it has none.
func ownerToken(host string) string {
	owners.Lock()
	defer owners.Unlock()
	before := ""
	for home := range owners.homes {
		for _, name := range []string{filepath.Join("directors", strings.ReplaceAll(host, ":", "_")+".json"), "scheduler.json"} {
			data, err := os.ReadFile(filepath.Join(home, name))
			var at api.DirectorFile
			if err != nil || json.Unmarshal(data, &at) != nil || at.URL != "http://"+host || at.TokenFile == "" {
				continue
			}
			token, _ := os.ReadFile(at.TokenFile)
			if before = strings.TrimSpace(string(token)); syscall.Kill(at.PID, 0) == nil {
				return before
			}
		}
	}
	if token := agentToken(host); token != "" {
		return token
	}
	return before
}

// agentToken is the token that an agent of one of the boxes requires.
func agentToken(host string) string {
	for home := range owners.homes {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(home)), "*", "agents", "*", "agent.json"))
		for _, path := range files {
			data, err := os.ReadFile(path)
			var at struct {
				URL, Token string
				PID        int
			}
			if err == nil && json.Unmarshal(data, &at) == nil && at.URL == "http://"+host && syscall.Kill(at.PID, 0) == nil {
				return at.Token
			}
		}
	}
	return ""
}

// asOwner adds the owner's token to requests without a token.
type asOwner struct{ http.RoundTripper }

func (o asOwner) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		if token := ownerToken(r.URL.Host); token != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return o.RoundTripper.RoundTrip(r)
}

// stranger makes requests as another user of the machine.
var stranger = &http.Client{Transport: &http.Transport{}}

func init() { http.DefaultTransport = asOwner{http.DefaultTransport} }

// token is the token of the box's owner, or the one that its processes are
// given; "" before its first director has started.
func (b *box) token() string {
	if given := b.vars["SIGNALBOX_TOKEN"]; given != "" {
		return given
	}
	token, _ := os.ReadFile(filepath.Join(b.vars["SIGNALBOX_HOME"], "token"))
	return strings.TrimSpace(string(token))
}

// loginLink is the path of a link that logs the owner in.
func (b *box) loginLink(url string) string {
	b.t.Helper()
	return strings.TrimPrefix(strings.TrimSpace(b.want(0, "login-link", "--director", url).out), url)
}
