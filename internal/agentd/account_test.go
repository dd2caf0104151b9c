package agentd_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// TestAccountOfAgents: agents with the same login share one account, whatever host
// they run on. A configured name has precedence, and a task that sets a key uses
// another account.
func TestAccountOfAgents(t *testing.T) {
	name := func(change func(*agentd.Config)) (*agent, string) {
		t.Helper()
		cfg := config(t, "claude")
		cfg.Runner.Binary = "/bin/false"
		change(&cfg)
		a := start(t, cfg)
		account := a.daemon.Status().Account
		if account == nil {
			return a, ""
		}
		return a, account.Name
	}
	key := func(k string) func(*agentd.Config) {
		return func(c *agentd.Config) { c.Environ = append(c.Environ, "ANTHROPIC_API_KEY="+k) }
	}
	_, one := name(key("sk-one"))
	_, same := name(key("sk-one"))
	_, other := name(key("sk-other"))
	_, none := name(func(*agentd.Config) {})
	_, none2 := name(func(*agentd.Config) {})
	if one != same || one == other || none == none2 || none == one || strings.Contains(one, "sk-") {
		t.Errorf("accounts %q, %q, %q; not logged in: %q, %q", one, same, other, none, none2)
	}
	a, named := name(func(c *agentd.Config) { key("sk-one")(c); c.Account = "the-max-plan" })
	if named != "the-max-plan" || a.daemon.Status().Account.Login != "API key" {
		t.Errorf("account %+v", a.daemon.Status().Account)
	}
	if _, command := name(func(c *agentd.Config) { c.Kind, c.Runner.Command = "command", []string{"/bin/true"} }); command != "" {
		t.Errorf("a command spends %q", command)
	}
	cfg := config(t, "claude")
	cfg.Account = "no name"
	if _, err := agentd.New(cfg); err == nil || !strings.Contains(err.Error(), "account") {
		t.Errorf("%v", err)
	}

	r := map[bool]api.AgentTaskStatus{}
	a, _ = name(func(c *agentd.Config) { key("sk-one")(c); c.Runner.Binary = fakeClaude(t, rejected, gaveUp) })
	for _, brought := range []bool{true, false} {
		task := api.AgentTask{Prompt: "x"}
		if brought {
			task.Env = map[string]string{"ANTHROPIC_API_KEY": "sk-of-the-task"}
		}
		s := a.end(a.submit(task).TaskID)
		wantError(t, s, "failed", "usage_limit", "limit reached")
		r[brought] = s
		if windows := a.daemon.Status().Account.Windows; (len(windows) == 0) != brought {
			t.Errorf("brought %v: %+v", brought, windows)
		}
	}
	if s := r[true]; s.Limit == nil || s.Account != nil {
		t.Errorf("with its own key: limit %+v, account %+v", s.Limit, s.Account)
	}
	if s := r[false]; s.Limit == nil || s.Account == nil || s.Account.Name != one {
		t.Errorf("with the agent's key: limit %+v, account %+v", s.Limit, s.Account)
	}
}
