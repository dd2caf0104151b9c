package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) whoamiCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Say who you are to the director, and what you may do",
		RunE:  query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Me, error) { return c.Me(ctx) }, a.meText),
	}
}

func (a *app) meText(me api.Me) error {
	who := me.Kind
	if me.ID != "" {
		who += " " + me.ID
	}
	if me.Email != "" {
		who += " (" + me.Email + ")"
	}
	a.put("%s", clean(who))
	if me.Open {
		a.note("The director is open: it asks nobody for a token. signalbox tokens create NAME --scope admin closes it.")
	}
	rows := [][]string{{"  may:", strings.Join(me.Scopes, ", ")}, {"  agents:", agentLimits(me.Agents)}}
	if me.TokenID != "" {
		rows = append(rows, []string{"  token:", me.TokenID})
	}
	if me.ExpiresAt != nil {
		rows = append(rows, []string{"  until:", a.clock(*me.ExpiresAt)})
	}
	return a.table(rows)
}

func agentLimits(agents []string) string {
	if len(agents) == 0 {
		return "all"
	}
	return strings.Join(agents, ", ")
}

func (a *app) tokensCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "List the tokens, without their secrets",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Tokens, error) {
			tokens, err := c.Tokens(ctx)
			return api.Tokens{Tokens: tokens}, err
		}, a.tokenTable),
	}
	cmd.AddCommand(a.createTokenCmd(), a.revokeTokenCmd())
	return cmd
}

func (a *app) tokenTable(all api.Tokens) error {
	if len(all.Tokens) == 0 {
		a.note("No tokens. signalbox tokens create NAME --scope admin makes the first, and closes the director.")
		return nil
	}
	rows := [][]string{{"ID", "NAME", "FOR", "MAY", "AGENTS", "USED", "STATE"}}
	for _, t := range all.Tokens {
		used := "not since the start"
		if t.LastUsedAt != nil {
			used = ago(a.io.Now().Sub(*t.LastUsedAt)) + " ago"
		}
		rows = append(rows, []string{
			t.ID, t.Name, t.Kind + " " + t.Principal, strings.Join(t.Scopes, ","), agentLimits(t.Agents), used, a.tokenState(t),
		})
	}
	return a.table(rows)
}

func (a *app) tokenState(t api.Token) string {
	switch {
	case t.RevokedAt != nil:
		return "revoked"
	case t.ExpiresAt == nil:
		return "in force"
	case t.ExpiresAt.Before(a.io.Now()):
		return "expired"
	}
	return "until " + a.clock(*t.ExpiresAt)
}

func (a *app) createTokenCmd() *cobra.Command {
	var req api.NewToken
	var expires span
	var out string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print its secret, this once",
		Long: "Make a token and print its secret, this once: it alone goes to standard output. The token speaks for an\n" +
			"agent, for a user, or for a service of its own name. The first with the scope admin closes the director,\n" +
			"which from then on asks everyone for a token.",
		Example: "  signalbox tokens create laptop --scope admin --out ~/.config/signalbox.token\n" +
			"  signalbox tokens create ci --scope submit,read --limit-agents tests --expires 720h\n" +
			"  signalbox tokens create coder --agent coder",
		RunE: run(func(ctx context.Context, args []string) error {
			req.Name, req.ExpiresInSeconds = args[0], int64(expires.seconds())
			if req.Agent != "" && req.User != "" {
				return usage("--agent and --user do not go together: a token speaks for one")
			}
			if req.Agent == "" && req.User == "" && len(req.Scopes) == 0 {
				return usage("--scope: a token of a service needs its rights, such as --scope submit,read").hinted("rights: %s", strings.Join(scopeNames(), ", "))
			}
			return a.with(ctx, func(c *client.Client) error { return a.createToken(ctx, c, req, out) })
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&req.Agent, "agent", "", "it speaks for this `agent`")
	f.StringVar(&req.User, "user", "", "it speaks for this `user`")
	f.StringSliceVar(&req.Scopes, "scope", nil, "its `rights`, with commas: "+strings.Join(scopeNames(), ", ")+" (default: those of the agent or user)")
	f.StringSliceVar(&req.Agents, "limit-agents", nil, "the only `agents` that it may use and see, with commas (default: all)")
	f.StringVar(&out, "out", "", "new `file`, mode 0600, for the secret instead of standard output: what --token-file takes")
	f.Var(&expires, "expires", "it ends by itself after this long, such as 720h (default: never)")
	return cmd
}

func scopeNames() []string {
	var out []string
	for _, s := range signalbox.Scopes() {
		out = append(out, string(s))
	}
	return out
}

// closing is what to say where the director was open until now.
const closing = "The director was open. From now on it asks everyone for a token."

// open reports whether the director asks nobody for a token. Where that cannot
// be learnt it is no matter: it is only for a note.
func open(ctx context.Context, c *client.Client) bool {
	me, err := c.Me(ctx)
	return err == nil && me.Open
}

func (a *app) createToken(ctx context.Context, c *client.Client, req api.NewToken, out string) (err error) {
	var secret *os.File
	if out != "" { // first: a token whose secret cannot be kept is not made
		if secret, err = a.newSecretFile(out); err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, secret.Close()); err != nil {
				_ = os.Remove(secret.Name())
			}
		}()
	}
	wasOpen := open(ctx, c)
	a.noteUnknownAgents(ctx, c, append([]string{req.Agent}, req.Agents...)...)
	got, err := c.CreateToken(ctx, req)
	if err != nil {
		if client.IsUnreachable(err) { // who repeats it would leave a token behind whose secret nobody has
			f := toFault(err)
			return f.hinted("signalbox tokens shows whether it was made; if so, revoke it and make another")
		}
		return err
	}
	if secret != nil {
		if _, err := secret.WriteString(got.Secret + "\n"); err != nil {
			return fmt.Errorf("the secret of %s was not kept, revoke it: %w", got.ID, err)
		}
		got.Secret = ""
	}
	return a.print(got, func() error {
		a.note("Token %s (%s) for %s: may %s, agents %s, %s.", got.ID, got.Name, got.Kind+" "+got.Principal,
			strings.Join(got.Scopes, ", "), agentLimits(got.Agents), a.tokenState(got.Token))
		if wasOpen && slices.Contains(got.Scopes, string(signalbox.ScopeAdmin)) {
			a.note("%s", closing)
		}
		if secret != nil {
			a.note("The secret is in %s. Give it with --token-file.", out)
			return nil
		}
		a.note("The secret is shown this once. Give it as SIGNALBOX_TOKEN.")
		return a.say("%s", clean(got.Secret))
	})
}

// newSecretFile makes a file for a secret, which must not be there yet.
func (a *app) newSecretFile(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.io.Dir, path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, usage("--out: %s", err)
	}
	return f, nil
}

func (a *app) revokeTokenCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:               "revoke ID",
		Short:             "Make a token worthless at once",
		ValidArgsFunction: a.offer(tokenIDs),
	}, "Whoever uses token %s is shut out. Revoke it?", func(ctx context.Context, c *client.Client, id string) error {
		return a.done("revoked", id, c.RevokeToken(ctx, id))
	})
}

// done says what was done to a name, for a command whose route answers with nothing.
func (a *app) done(what, id string, err error) error {
	if err != nil {
		return err
	}
	return a.print(struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}{id, what}, func() error { return a.say("%s: %s", strings.ToUpper(what[:1])+what[1:], clean(id)) })
}

func tokenIDs(ctx context.Context, c *client.Client) []string {
	tokens, _ := c.Tokens(ctx)
	var out []string
	for _, t := range tokens {
		if t.RevokedAt == nil && (t.ExpiresAt == nil || t.ExpiresAt.After(time.Now())) {
			out = append(out, described(t.ID, fmt.Sprintf("%s (%s %s)", t.Name, t.Kind, t.Principal)))
		}
	}
	return out
}
