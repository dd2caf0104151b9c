package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Account is the account that the runs of a runner use.
type Account struct {
	// Name is the same wherever the same login is used, and differs for any other
	// login. It does not reveal the key or login. "": the kind uses no account.
	Name  string
	Login string // for people: an address, or the kind of login
}

// login is the data that identifies an account.
type login struct {
	endpoint string // URL of the provider
	identity string // of the user who is logged in, or a key; "": unknown
	text     string // Account.Login
}

// account names a login. An unknown login counts as a different one on each host and
// in each home.
func (b commonRunner) account(home string, l login) Account {
	if l.identity == "" {
		host, _ := os.Hostname()
		l.identity = "at\n" + host + "\n" + home
	}
	sum := sha256.Sum256([]byte("signalbox account\n" + b.kind + "\n" + strings.TrimRight(l.endpoint, "/") + "\n" + l.identity))
	return Account{Name: fmt.Sprintf("%s-%x", b.kind, sum[:5]), Login: oneLine(Plain(l.text), 120)}
}

// Account is empty, for kinds that use no account.
func (b commonRunner) Account(string, []string, map[string]string) Account { return Account{} }

// Descriptions of logins without an address.
const (
	loginKey   = "API key"
	loginToken = "OAuth token"
	loginOther = "a login that tells no account"
	loginNone  = "not logged in"
)

// Account follows the CLI's own order: keys and tokens in the environment, a helper
// that prints a key, the login.
func (c claudeRunner) Account(home string, environ []string, _ map[string]string) Account {
	var settings struct {
		Env    map[string]string `json:"env"`
		Helper string            `json:"apiKeyHelper"`
	}
	var user struct {
		Login struct {
			Account string `json:"accountUuid"`
			Org     string `json:"organizationUuid"`
			Email   string `json:"emailAddress"`
		} `json:"oauthAccount"`
	}
	_ = readJSON(filepath.Join(c.StateDir(home), "settings.json"), &settings) // unreadable settings are ignored
	_ = readJSON(filepath.Join(home, ".claude.json"), &user)
	value := func(name string) string { return cmp.Or(settings.Env[name], env(environ, name)) }
	l := login{endpoint: cmp.Or(value("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"), text: loginNone}
	for _, cloud := range []string{"BEDROCK", "VERTEX", "FOUNDRY"} {
		if on := value("CLAUDE_CODE_USE_" + cloud); on != "" && on != "0" && on != "false" {
			l.text = "the login of " + strings.ToLower(cloud)
			return c.account(home, l)
		}
	}
	_, err := os.Stat(filepath.Join(c.StateDir(home), ".credentials.json"))
	switch token, key, plan := value("ANTHROPIC_AUTH_TOKEN"), value("ANTHROPIC_API_KEY"), value("CLAUDE_CODE_OAUTH_TOKEN"); {
	case token != "":
		l.identity, l.text = "token\n"+token, loginToken
	case key != "":
		l.identity, l.text = "key\n"+key, loginKey
	case settings.Helper != "":
		l.text = loginKey
	case plan != "":
		l.identity, l.text = "token\n"+plan, loginToken
	case user.Login.Account != "":
		l.identity, l.text = "account\n"+user.Login.Account+"\n"+user.Login.Org, cmp.Or(user.Login.Email, loginOther)
	case err == nil:
		l.text = loginOther
	}
	return c.account(home, l)
}

// codexSetting returns a string at the top level or in a table of codex's
// config.toml.
func codexSetting(text, table, name string) string {
	text = "\n" + text
	if table != "" {
		_, after, _ := strings.Cut(text, "\n["+table+"]")
		text = after
	}
	text, _, _ = strings.Cut(text, "\n[")
	m := regexp.MustCompile(`(?m)^[ \t]*` + regexp.QuoteMeta(name) + `[ \t]*=[ \t]*["']([^"']*)["']`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

// Account follows the order of codex exec.
func (c codexRunner) Account(home string, environ []string, _ map[string]string) Account {
	l, _ := c.login(home, environ)
	return c.account(home, l)
}

// login is that of the configured provider, CODEX_API_KEY, or the stored login. plan reports that
// it is a ChatGPT login used with ChatGPT.
func (c codexRunner) login(home string, environ []string) (l login, plan bool) {
	text, _ := os.ReadFile(filepath.Join(c.StateDir(home), "config.toml")) // an unreadable file is ignored
	config := string(text)
	var auth struct {
		Key    string `json:"OPENAI_API_KEY"`
		Tokens struct {
			ID      string `json:"id_token"`
			Account string `json:"account_id"`
		} `json:"tokens"`
	}
	_ = readJSON(filepath.Join(c.StateDir(home), "auth.json"), &auth)
	l = login{endpoint: cmp.Or(codexSetting(config, "", "openai_base_url"), env(environ, "OPENAI_BASE_URL"), "https://api.openai.com/v1"), text: loginNone}
	provider := cmp.Or(codexSetting(config, "", "model_provider"), "openai")
	if provider != "openai" {
		table := "model_providers." + provider
		l.endpoint = cmp.Or(codexSetting(config, table, "base_url"), provider)
		if key := env(environ, codexSetting(config, table, "env_key")); key != "" {
			l.identity, l.text = "key\n"+key, loginKey
			return l, false
		}
	}
	who := claimsOf(auth.Tokens.ID)
	switch key := env(environ, "CODEX_API_KEY"); {
	case key != "":
		l.identity, l.text = "key\n"+key, loginKey
	case auth.Tokens.Account != "" || who.user() != "":
		l.identity, l.text = "account\n"+auth.Tokens.Account+"\n"+who.user(), cmp.Or(who.Email, loginOther)
		plan = provider == "openai"
	case auth.Key != "":
		l.identity, l.text = "key\n"+auth.Key, loginKey
	}
	return l, plan
}

// claims are the claims of an ID token about its user.
type claims struct {
	Email string `json:"email"`
	Sub   string `json:"sub"`
	Auth  struct {
		User string `json:"chatgpt_user_id"`
	} `json:"https://api.openai.com/auth"`
}

func (c claims) user() string { return cmp.Or(c.Auth.User, c.Sub) }

// claimsOf decodes a token that the CLI has already verified.
func claimsOf(token string) (c claims) {
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	if b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(body, "=")); err == nil {
		_ = json.Unmarshal(b, &c) // other forms are ignored
	}
	return c
}

// opencodeKeys matches the variables from which opencode takes keys.
var opencodeKeys = regexp.MustCompile(`^[A-Z0-9_]+_API_KEY$`)

// Account combines all logins and keys that opencode has, because its model decides
// which one a run uses.
func (c opencodeRunner) Account(home string, environ []string, _ map[string]string) Account {
	var logins map[string]struct {
		Type    string `json:"type"`
		Key     string `json:"key"`
		Account string `json:"accountId"`
	}
	_ = readJSON(filepath.Join(c.StateDir(home), "auth.json"), &logins) // unreadable logins are ignored
	var config struct {
		Provider map[string]struct {
			Options struct {
				URL string `json:"baseURL"`
				Key string `json:"apiKey"`
			} `json:"options"`
		} `json:"provider"`
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc"} {
		_ = readJSON(filepath.Join(home, ".config", "opencode", name), &config)
	}
	var parts, names []string
	untold := false
	for _, name := range slices.Sorted(maps.Keys(logins)) {
		l := logins[name]
		untold = untold || l.Key+l.Account == ""
		parts = append(parts, "login\n"+name+"\n"+l.Key+"\n"+l.Account)
		names = append(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Provider)) {
		o := config.Provider[name].Options
		parts = append(parts, "provider\n"+name+"\n"+o.URL+"\n"+o.Key)
	}
	for _, kv := range slices.Sorted(slices.Values(environ)) {
		if name, value, _ := strings.Cut(kv, "="); opencodeKeys.MatchString(name) && value != "" {
			parts = append(parts, "key\n"+kv)
		}
	}
	l := login{text: loginNone}
	switch {
	case len(names) > 0:
		l.text = strings.Join(names, ", ")
	case len(parts) > 0:
		l.text = loginKey
	}
	if !untold {
		l.identity = strings.Join(parts, "\n")
	}
	return c.account(home, l)
}

// Account depends on the endpoint and its key.
func (c llmRunner) Account(_ string, environ []string, brought map[string]string) Account {
	base, key := c.opt.LLM.endpoint(environ, brought)
	l := login{endpoint: cmp.Or(base, c.opt.LLM.Provider), identity: "key\n" + key, text: loginKey}
	if key == "" {
		l.identity, l.text = "no key", "no key"
	}
	return c.account("", l)
}
