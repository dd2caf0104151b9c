package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refuses starts a role that must not start: it reports the reason on
// standard error with a remedy, prints no address, and exits with the exit
// code.
func (b *box) refuses(code int, args []string, want ...string) {
	b.t.Helper()
	got := b.cli(args...)
	if got.code != code {
		b.t.Errorf("signalbox %s: exit code %d, want %d\n%s", strings.Join(args, " "), got.code, code, got.err)
	}
	if strings.Contains(got.out, "http://") {
		b.t.Errorf("signalbox %s prints an address though it does not start: %q", strings.Join(args, " "), got.out)
	}
	if !strings.HasPrefix(got.err, "Error: ") {
		b.t.Errorf("signalbox %s: the error is not what standard error begins with:\n%s", strings.Join(args, " "), got.err)
	}
	for _, text := range want {
		if !strings.Contains(got.err, text) {
			b.t.Errorf("signalbox %s: no %q in\n%s", strings.Join(args, " "), text, got.err)
		}
	}
}

func TestADataFolderHasOneDirector(t *testing.T) {
	b := newBox(t)
	director := b.director()
	for _, role := range []string{"director", "up"} {
		b.refuses(1, b.server(role, nil), "in use by process "+fmt.Sprint(director.pid()), "--data")
	}
	id := b.submit(b.client(director.url), prompt("the first one goes on"))
	b.want(0, "status", id)
}

func TestATakenPort(t *testing.T) {
	b := newBox(t)
	director := b.director()
	addr := strings.TrimPrefix(director.url, "http://")
	other := filepath.Join(b.root, "other")
	b.refuses(1, []string{"director", "--addr", addr, "--data", other},
		addr+" is taken", fmt.Sprintf("data folder %s (pid %d)", b.data, director.pid()), "--addr 127.0.0.1:0")
	b.refuses(1, []string{"agent", "--kind", "demo", "--addr", addr, "--data", other}, addr+" is taken", "--addr")
	if _, err := os.Stat(filepath.Join(other, "signalbox.db")); err == nil {
		t.Error("a director that could not listen made a database")
	}
}

// A damaged database is left alone: its data may be recoverable.
func TestACorruptDatabase(t *testing.T) {
	b := newBox(t)
	director := b.director()
	c := b.client(director.url)
	for n := range 20 {
		b.submit(c, prompt(fmt.Sprintf("worth keeping %d", n)))
	}
	director.stop()
	whole := []byte(b.read(filepath.Join(b.data, "signalbox.db")))
	middle := bytes.Clone(whole)
	for at := 4096; at < len(middle); at += 4096 { // the header of every page but the first
		copy(middle[at:], bytes.Repeat([]byte{0xff}, 64))
	}
	for name, bad := range map[string][]byte{
		"garbage": bytes.Repeat([]byte("this is not a database "), 500), "broken pages": middle,
		"cut off": whole[:len(whole)/2], "another program's": append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{1}, 8176)...),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			path := b.file("data/signalbox.db", string(bad), 0o600)
			b.refuses(1, b.server("director", nil), path, "move ")
			if after := b.read(path); after != string(bad) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAnUnwritableDataFolder(t *testing.T) {
	b := newBox(t)
	in := b.file("a-file", "", 0o600)
	b.refuses(1, []string{"director", "--addr", "127.0.0.1:0", "--data", filepath.Join(in, "data")}, in)
	if os.Getuid() == 0 {
		b.refuses(1, []string{"director", "--addr", "127.0.0.1:0", "--data", "/proc/signalbox"}, "/proc/signalbox")
		return // root may write anywhere else
	}
	if err := os.Mkdir(b.data, 0o500); err != nil {
		t.Fatal(err)
	}
	b.refuses(1, b.server("director", nil), b.data, "--data")
}

func TestAPublicAddressNeedsAToken(t *testing.T) {
	b := newBox(t)
	b.refuses(1, []string{"director", "--open", "--addr", "0.0.0.0:0", "--data", b.data}, "token", "SIGNALBOX_TOKEN")
	b.refuses(1, []string{"up", "--open", "--addr", "[::]:0", "--data", b.data}, "token")
	b.vars["SIGNALBOX_TOKEN"] = "a-token-of-some-length-0123456789"
	b.director("--addr", "0.0.0.0:0").stop()
	// Or an admin, who was created while it listened on loopback.
	delete(b.vars, "SIGNALBOX_TOKEN")
	open := b.director("--open")
	secret := strings.TrimSpace(b.want(0, "tokens", "create", "admin", "--scope", "admin").out)
	b.want(4, "agents") // from then on it is closed
	b.vars["SIGNALBOX_TOKEN"] = secret
	b.want(0, "agents")
	open.stop()
	delete(b.vars, "SIGNALBOX_TOKEN")
	b.director("--addr", "0.0.0.0:0").stop()
}

func TestABadConfigurationNamesTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown key":    {"addr: 127.0.0.1:0\nqueue:\n  max_sise: 9\n", []string{"signalbox.yaml:3", "max_sise", "did you mean queue.max_size"}},
		"wrong type":     {"queue:\n  max_size: many\n", []string{"signalbox.yaml:2", "max_size"}},
		"out of range":   {"grace: -1s\n", []string{"signalbox.yaml:1", "grace"}},
		"not YAML":       {"addr: [\n", []string{"signalbox.yaml", "not YAML"}},
		"unset variable": {"instance: ${SIGNALBOX_NOT_SET_ANYWHERE}\n", []string{"signalbox.yaml:1", "SIGNALBOX_NOT_SET_ANYWHERE"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.file("work/signalbox.yaml", c.text, 0o600)
			b.refuses(2, b.server("director", nil), c.want...)
			// Commands that contact a director do not need the director's configuration.
			b.want(7, "status", "--director", "http://"+freePort(t))
		})
	}
}

func TestBadFlags(t *testing.T) {
	b := newBox(t)
	for _, args := range [][]string{
		{"up", "--no-such-flag"}, {"director", "--grace", "soon"}, {"director", "--addr", "nowhere"}, {"director", "extra"},
		{"up", "--agents", "robots"}, {"agent", "--kind", "robot"}, {"agent", "--slots", "0"}, {"agent", "stray"},
		{"no-such-command"}, {"submit"}, {"submit", "two", "words"}, {"submit", "--priority", "11", "p"}, {"submit", ""}, {"--color", "mauve", "status"},
	} {
		b.refuses(2, args)
	}
}
