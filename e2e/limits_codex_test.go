package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

// The usage of a login is on the card of its account before anything was submitted. An
// account with a key has no usage and is not queried.
func TestAccountsShowWhatCodexHasUsedBeforeAnyRun(t *testing.T) {
	b := newBox(t)
	b.quietCLIs()
	if err := os.Symlink(installed(t, "codex"), filepath.Join(b.bin, "codex")); err != nil {
		t.Fatal(err)
	}
	p := model.StartChatGPT()
	t.Cleanup(p.Close)
	p.Used.Store(42)
	d := b.director()
	c := b.client(d.url)
	for name, key := range map[string]string{"login": "", "key": "sk-1"} {
		home := filepath.Join(b.root, "home-"+name)
		if err := p.LogIn(home); err != nil {
			t.Fatal(err)
		}
		a := launch(t, b.work, b.environ("HOME="+home, "CODEX_API_KEY="+key), b.agentLine(name, d.url, []string{"--kind", "codex", "--workdir", home})...)
		a.says("INFO registered")
		b.untilState(c, name, "idle")
	}
	windows := func(agent string) string {
		got, err := c.Accounts(b.ctx())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got.Accounts {
			if len(a.Agents) == 1 && a.Agents[0] == agent {
				return a.State + fmt.Sprint(a.Windows)
			}
		}
		return "no account"
	}
	b.until("the card has the windows of the login", func() bool {
		s := windows("login")
		return strings.HasPrefix(s, "open") && strings.Contains(s, "five_hour 42") && strings.Contains(s, "seven_day 17")
	})
	if s := windows("key"); s != "open[]" {
		t.Errorf("the account of the key: %s", s)
	}
	if s := b.want(0, "accounts").out; !strings.Contains(s, "42%") || !strings.Contains(s, "ada@example.org") {
		t.Errorf("accounts says %s", s)
	}
	if n := p.Asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}
