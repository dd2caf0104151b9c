package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) whoamiCmd() *cobra.Command {
	return query(a, &cobra.Command{Use: "whoami", Short: "Show who you are to the director, and what you may do"}, noArg((*client.Client).Me), a.meText)
}

func (a *app) meText(me api.Me) {
	a.say("%s%s%s", clean(me.Kind), opt(" %s", me.ID), opt(" (%s)", me.Email))
	if me.Open {
		a.note("The director is open: it requires no token. signalbox tokens create NAME --scope admin closes it.")
	}
	a.table(nonEmptyRows([][]string{
		{"  may:", strings.Join(me.Scopes, ", ")}, {"  agents:", agentLimits(me.Agents)}, {"  token:", me.TokenID}, {"  until:", a.formatTimePtr(me.ExpiresAt)},
	}))
}

func agentLimits(agents []string) string {
	if len(agents) == 0 {
		return "all"
	}
	return strings.Join(agents, ", ")
}

func (a *app) tokensCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "tokens", Short: "List the tokens, without their secrets"}
	cmd.AddCommand(a.createTokenCmd(), a.revokeTokenCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Tokens, error) {
		tokens, err := c.Tokens(ctx)
		return api.Tokens{Tokens: tokens}, err
	}, func(all api.Tokens) {
		list(a, all.Tokens, "No tokens. signalbox tokens create NAME --scope admin makes the first, and closes the director.",
			[]string{"ID", "NAME", "FOR", "MAY", "AGENTS", "USED", "STATE"}, func(t *api.Token) []string {
				return []string{t.ID, t.Name, t.Kind + " " + t.Principal, strings.Join(t.Scopes, ","), agentLimits(t.Agents),
					a.ageOr(t.LastUsedAt, "not since the start"), a.tokenState(*t)}
			})
	})
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
	var expires durationFlag
	var out string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print its secret once",
		Long: "Make a token and print its secret, which cannot be shown again. Only the secret goes to standard output. The token\n" +
			"stands for an agent, a user, or a service with the token's name. The first token with the scope admin closes the\n" +
			"director: from then on every request needs a token.",
		Example: "  signalbox tokens create laptop --scope admin --out ~/.config/signalbox.token\n" +
			"  signalbox tokens create ci --scope submit,read --limit-agents tests --expires 720h\n" +
			"  signalbox tokens create coder --agent coder",
		PreRunE: func(_ *cobra.Command, args []string) error {
			req.Name, req.ExpiresInSeconds = args[0], int64(expires.seconds())
			if req.Agent != "" && req.User != "" {
				return usage("--agent and --user do not go together: a token stands for one of them")
			}
			if req.Agent == "" && req.User == "" && len(req.Scopes) == 0 {
				return usage("--scope: the token of a service needs scopes, such as --scope submit,read").withHint("scopes: %s", strings.Join(scopeNames(), ", "))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Agent, "agent", "", "`agent` that the token stands for")
	f.StringVar(&req.User, "user", "", "`user` that the token stands for")
	f.StringSliceVar(&req.Scopes, "scope", nil, "its `scopes`, separated by commas: "+strings.Join(scopeNames(), ", ")+" (default: those of the agent or user)")
	f.StringSliceVar(&req.Agents, "limit-agents", nil, "the only `agents` that it may use and see, separated by commas (default: all)")
	f.StringVar(&out, "out", "", "write the secret to this new `file`, mode 0600, for --token-file, instead of standard output")
	f.Var(&expires, "expires", "the token expires after this long, such as 720h (default: never)")
	var wasOpen bool
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, _ []string) (api.TokenCreated, error) {
		wasOpen = isOpen(ctx, c)
		return a.createToken(ctx, c, req, out)
	}, func(got api.TokenCreated) { a.tokenCreated(got, wasOpen, out) })
}

func scopeNames() []string {
	var out []string
	for _, s := range signalbox.Scopes() {
		out = append(out, string(s))
	}
	return out
}

// closedNote is printed when a command closes a director that was open.
const closedNote = "The director was open. From now on it requires a token."

// isOpen reports whether the director requires no token. Errors are ignored: the
// answer is only used for a note.
func isOpen(ctx context.Context, c *client.Client) bool {
	me, err := c.Me(ctx)
	return err == nil && me.Open
}

func (a *app) createToken(ctx context.Context, c *client.Client, req api.NewToken, out string) (got api.TokenCreated, err error) {
	var secret *os.File
	if out != "" { // before the request: no token is made if its file cannot be
		if secret, err = os.OpenFile(a.absPath(out), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return got, usage("--out: %s", err)
		}
		defer func() {
			if err = errors.Join(err, secret.Close()); err != nil {
				_ = os.Remove(secret.Name())
			}
		}()
	}
	a.noteUnknownAgents(ctx, c, append([]string{req.Agent}, req.Agents...)...)
	got, err = c.CreateToken(ctx, req)
	if client.IsUnreachable(err) { // repeating it could leave a token whose secret is lost
		return got, toFault(err).withHint("signalbox tokens shows whether the token was made; if so, revoke it and make another")
	}
	if err == nil && secret != nil {
		if _, err := secret.WriteString(got.Secret + "\n"); err != nil {
			return got, fmt.Errorf("the secret of %s was not saved, revoke the token: %w", got.ID, err)
		}
		got.Secret = ""
	}
	return got, err
}

// tokenCreated describes a new token. It prints the secret unless it is in a file.
func (a *app) tokenCreated(got api.TokenCreated, wasOpen bool, out string) {
	a.note("Token %s (%s) for %s: may %s, agents %s, %s.", got.ID, got.Name, got.Kind+" "+got.Principal,
		strings.Join(got.Scopes, ", "), agentLimits(got.Agents), a.tokenState(got.Token))
	if wasOpen && slices.Contains(got.Scopes, string(signalbox.ScopeAdmin)) {
		a.note("%s", closedNote)
	}
	if out != "" {
		a.note("The secret is in %s. Pass it with --token-file.", out)
		return
	}
	a.note("The secret is not shown again. Set it as SIGNALBOX_TOKEN.")
	a.say("%s", clean(got.Secret))
}

func (a *app) revokeTokenCmd() *cobra.Command {
	return removal(a, &cobra.Command{Use: "revoke ID", Short: "Revoke a token at once", ValidArgsFunction: a.completeArg(tokenIDs)},
		"Clients that use token %s lose access. Revoke it?", "revoked", (*client.Client).RevokeToken)
}

func tokenIDs(ctx context.Context, c *client.Client) []string {
	tokens, _ := c.Tokens(ctx)
	return completions(tokens, func(t *api.Token) (string, string) {
		if t.RevokedAt != nil || t.ExpiresAt != nil && !t.ExpiresAt.After(time.Now()) {
			return "", ""
		}
		return t.ID, fmt.Sprintf("%s (%s %s)", t.Name, t.Kind, t.Principal)
	})
}

func (a *app) usersCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "users", Short: "List the people who can log in"}
	cmd.AddCommand(a.setUserCmd(), a.passwordCmd(), a.removeUserCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Users, error) {
		users, err := c.Users(ctx)
		return api.Users{Users: users}, err
	}, func(all api.Users) {
		list(a, all.Users, "No users. signalbox users set ID --role admin makes the first, and closes the director.",
			[]string{"ID", "EMAIL", "ROLE", "AGENTS", "STATE"}, func(u *api.User) []string {
				state := "active"
				if u.Disabled {
					state = "disabled"
				}
				return []string{u.ID, u.Email, u.Role, agentLimits(u.Agents), state}
			})
	})
}

// userFlags are the flags of users set.
type userFlags struct {
	email, role          string
	agents               []string
	disabled             bool
	ask, onStandardInput bool
}

func (a *app) setUserCmd() *cobra.Command {
	var s userFlags
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Make or change a user",
		Long: "Make or change a user. Flags that are not given leave a user's settings as they are. For a new user, and with\n" +
			"--password, the command asks for the password on the terminal, twice and without echo; in scripts --password-stdin\n" +
			"reads it. The first user with the role admin closes the director.",
		ValidArgsFunction: a.completeArg(userIDs),
	}
	f := cmd.Flags()
	f.StringVar(&s.email, "email", "", "e-mail `address`, recorded with what the user does")
	f.Var(newChoice(&s.role, "", "admin", "user"), "role", "what the user may do: admin (everything) or user (read, submit, cancel, tool; default)")
	f.StringSliceVar(&s.agents, "limit-agents", nil, "the only `agents` that the user may use and see, separated by commas; \"\" for all")
	f.BoolVar(&s.disabled, "disabled", false, "refuse the user's logins and tokens; --disabled=false undoes it")
	f.BoolVar(&s.ask, "password", false, "ask for a new password")
	f.BoolVar(&s.onStandardInput, "password-stdin", false, "read the password from standard input")
	var wasOpen bool
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (none api.User, err error) {
		req, err := a.putUser(ctx, c, f, &s, args[0])
		if err != nil {
			return none, err
		}
		wasOpen = isOpen(ctx, c)
		return c.PutUser(ctx, args[0], req)
	}, func(got api.User) {
		if wasOpen && got.Role == string(signalbox.RoleAdmin) {
			a.note("%s", closedNote)
		}
		a.say("User %s (%s)", clean(got.ID), clean(got.Role))
	})
}

// putUser builds the request from the flags.
func (a *app) putUser(ctx context.Context, c *client.Client, flags *pflag.FlagSet, s *userFlags, id string) (req api.PutUser, err error) {
	if s.ask && s.onStandardInput {
		return req, usage("--password and --password-stdin do not go together")
	}
	users, err := c.Users(ctx)
	if err != nil {
		return req, err
	}
	req.Role = s.role
	if flags.Changed("email") {
		req.Email = &s.email
	}
	if flags.Changed("limit-agents") { // an empty list allows all agents; nil would leave them unchanged
		req.Agents = slices.DeleteFunc(append([]string{}, s.agents...), func(name string) bool { return name == "" })
	}
	if flags.Changed("disabled") {
		req.Disabled = &s.disabled
	}
	isNew := !slices.ContainsFunc(users, func(u api.User) bool { return u.ID == id })
	req.Password, err = a.newPassword(ctx, s, isNew)
	return req, err
}

// newPassword reads the new password; "" leaves it unchanged.
func (a *app) newPassword(ctx context.Context, s *userFlags, isNew bool) (string, error) {
	const most = 1024 // bytes, the limit of the director
	switch {
	case s.onStandardInput:
		data, err := io.ReadAll(io.LimitReader(a.io.In, most+2))
		if err != nil {
			return "", fmt.Errorf("read the password from standard input: %w", err)
		}
		secret := strings.TrimRight(string(data), "\r\n")
		if secret == "" || len(secret) > most {
			return "", usage("the password on standard input has %d bytes: want 12 to %d", len(secret), most)
		}
		return secret, nil
	case !s.ask && !isNew:
		return "", nil
	case a.io.TTY == nil:
		return "", usage("no terminal to ask for the password").withHint("give it with --password-stdin")
	}
	first, err := a.io.TTY.Password(ctx, "Password (12 bytes or more): ")
	if err != nil {
		return "", err
	}
	again, err := a.io.TTY.Password(ctx, "Again: ")
	if err == nil && first != again {
		err = usage("the two passwords are not the same")
	}
	return first, err
}

func (a *app) passwordCmd() *cobra.Command {
	var s userFlags
	cmd := &cobra.Command{
		Use:   "password",
		Short: "Change your own password",
		Long: "Change your own password: that of the user whose token the command sends. It asks for the current and the new\n" +
			"password on the terminal, without echo; in scripts --password-stdin reads both, one per line. All your browser\n" +
			"logins end. An admin sets another user's password with users set ID --password.",
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&s.onStandardInput, "password-stdin", false, "read both from standard input, the current password first")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, _ []string) (none done, err error) {
		old := ""
		if s.onStandardInput {
			if old, err = a.passwordLine(); err != nil {
				return none, err
			}
		} else if a.io.TTY != nil {
			if old, err = a.io.TTY.Password(ctx, "Current password: "); err != nil {
				return none, err
			}
		}
		password, err := a.newPassword(ctx, &s, true)
		if err != nil {
			return none, err
		}
		me, err := c.ChangePassword(ctx, old, password)
		return done{me.ID, "changed"}, err
	}, func(d done) { a.say("Password changed: %s", clean(d.ID)) })
}

// passwordLine reads one line of standard input and leaves what follows it there.
func (a *app) passwordLine() (string, error) {
	const most = 1024 // bytes, the limit of the director
	in := bufio.NewReader(io.LimitReader(a.io.In, 2*(most+2)))
	a.io.In = in
	line, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password from standard input: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); len(line) > most {
		return "", usage("the first line of standard input is too long for a password: want up to %d bytes", most)
	}
	return line, nil
}

func (a *app) removeUserCmd() *cobra.Command {
	return removal(a, &cobra.Command{Use: "remove ID", Short: "Remove a user and its tokens", ValidArgsFunction: a.completeArg(userIDs)},
		"Remove the user %s and its tokens?", "removed", (*client.Client).RemoveUser)
}

func userIDs(ctx context.Context, c *client.Client) []string {
	users, _ := c.Users(ctx)
	return completions(users, func(u *api.User) (string, string) { return u.ID, u.Role })
}

// loginLink is the JSON of signalbox login-link.
type loginLink struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expires_at"`
}

func (a *app) loginLinkCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:   "login-link",
		Short: "Print a link that logs you in to the dashboard once",
		Long: "Print a link that logs the owner of the director in to its dashboard: once, within ten minutes, in one browser. It\n" +
			"works with the director's own token, which this command finds for the user who started the director.",
	}, func(ctx context.Context, c *client.Client, _ []string) (loginLink, error) {
		link, err := c.LoginLink(ctx)
		return loginLink{strings.TrimRight(c.URL(), "/") + link.Path, link.ExpiresAt.Format(time.RFC3339)}, err
	}, func(link loginLink) { a.say("%s", clean(link.URL)) })
}
