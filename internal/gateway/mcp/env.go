package mcp

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// passNames are what a program gets of our own environment. Everything else
// stays here, Signalbox's tokens above all; what a server needs is declared.
var passNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

var passPrefixes = []string{"LC_", "XDG_"}

// childEnv makes the environment of a program.
func childEnv(own []string, declared map[string]string) []string {
	var env []string
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		_, set := declared[name]
		if !set && passes(name) {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		env = append(env, name+"="+declared[name])
	}
	return env
}

func passes(name string) bool {
	return slices.Contains(passNames, name) || slices.ContainsFunc(passPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// mask hides a server's secrets in what is logged and in what callers read.
type mask struct{ replace *strings.Replacer }

func newMask(s toolconf.Server) *mask {
	var secrets []string
	add := func(v string) {
		if len(v) >= gateway.MinSecret {
			secrets = append(secrets, v)
		}
	}
	for _, v := range s.Secrets { // also those within an argument or a longer text
		add(v)
	}
	for _, v := range s.Env {
		add(v)
	}
	for _, v := range s.Headers {
		add(v)
		if _, token, ok := strings.Cut(v, " "); ok { // Bearer …
			add(token)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		add(u.RawQuery)
		for _, vs := range u.Query() {
			for _, v := range vs {
				add(v)
				add(url.QueryEscape(v))
			}
		}
		if pw, ok := u.User.Password(); ok {
			add(pw)
			add(url.QueryEscape(pw))
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest that fits is hidden
	var pairs []string
	for _, v := range slices.Compact(secrets) {
		pairs = append(pairs, v, "[hidden]")
	}
	return &mask{strings.NewReplacer(pairs...)}
}

func (m *mask) hide(s string) string { return m.replace.Replace(s) }
