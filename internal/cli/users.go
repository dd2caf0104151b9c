package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) usersCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "users",
		Short: "List the people who can log in",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Users, error) {
			users, err := c.Users(ctx)
			return api.Users{Users: users}, err
		}, a.userTable),
	}
	cmd.AddCommand(a.setUserCmd(), a.removeUserCmd())
	return cmd
}

func (a *app) userTable(all api.Users) error {
	if len(all.Users) == 0 {
		a.note("No users. signalbox users set ID --role admin makes the first, and closes the director.")
		return nil
	}
	rows := [][]string{{"ID", "EMAIL", "ROLE", "AGENTS", "STATE"}}
	for _, u := range all.Users {
		state := "active"
		if u.Disabled {
			state = "disabled"
		}
		rows = append(rows, []string{u.ID, u.Email, u.Role, agentLimits(u.Agents), state})
	}
	return a.table(rows)
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
		Long: "Make or change a user. What is not given stays as it is. For a new user, and with --password, it asks for\n" +
			"the password on the terminal, twice and without showing it; elsewhere --password-stdin reads it. The first\n" +
			"user with the role admin closes the director.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, func(c *client.Client) error { return a.setUser(ctx, c, cmd.Flags(), &s, args[0]) })
		},
		ValidArgsFunction: a.offer(userIDs),
	}
	f := cmd.Flags()
	f.StringVar(&s.email, "email", "", "its `address`, for the record of what it did")
	f.Var(newChoice(&s.role, "", "admin", "user"), "role", "what it may do: admin (everything) or user (read, submit, cancel, tool; default)")
	f.StringSliceVar(&s.agents, "limit-agents", nil, "the only `agents` that it may use and see, with commas; \"\" for all")
	f.BoolVar(&s.disabled, "disabled", false, "let it log in no more, and refuse its tokens; --disabled=false undoes it")
	f.BoolVar(&s.ask, "password", false, "ask for a new password")
	f.BoolVar(&s.onStandardInput, "password-stdin", false, "read the password from standard input")
	return cmd
}

func (a *app) setUser(ctx context.Context, c *client.Client, flags *pflag.FlagSet, s *userFlags, id string) error {
	if s.ask && s.onStandardInput {
		return usage("--password and --password-stdin do not go together")
	}
	users, err := c.Users(ctx)
	if err != nil {
		return err
	}
	isNew := !slices.ContainsFunc(users, func(u api.User) bool { return u.ID == id })
	req := api.PutUser{Role: s.role}
	if flags.Changed("email") {
		req.Email = &s.email
	}
	if flags.Changed("limit-agents") { // none is all, and not nil
		req.Agents = slices.DeleteFunc(append([]string{}, s.agents...), func(name string) bool { return name == "" })
	}
	if flags.Changed("disabled") {
		req.Disabled = &s.disabled
	}
	if req.Password, err = a.newPassword(ctx, s, isNew); err != nil {
		return err
	}
	wasOpen := open(ctx, c)
	got, err := c.PutUser(ctx, id, req)
	if err != nil {
		return err
	}
	return a.print(got, func() error {
		if wasOpen && got.Role == string(signalbox.RoleAdmin) {
			a.note("%s", closing)
		}
		return a.say("User %s (%s)", clean(got.ID), clean(got.Role))
	})
}

// newPassword reads a password where one is wanted.
func (a *app) newPassword(ctx context.Context, s *userFlags, isNew bool) (string, error) {
	const most = 1024 // bytes; the director takes no more
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
		return "", usage("no terminal to ask for the password").hinted("give it with --password-stdin")
	}
	first, err := a.io.TTY.Password(ctx, "Password (12 bytes or more): ")
	if err != nil {
		return "", err
	}
	again, err := a.io.TTY.Password(ctx, "Again: ")
	if err == nil && first != again {
		err = usage("the two are not the same")
	}
	return first, err
}

func (a *app) removeUserCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:               "remove ID",
		Short:             "Forget a user, with its tokens",
		ValidArgsFunction: a.offer(userIDs),
	}, "The user %s is forgotten, with its tokens. Remove it?", func(ctx context.Context, c *client.Client, id string) error {
		return a.done("removed", id, c.RemoveUser(ctx, id))
	})
}

func userIDs(ctx context.Context, c *client.Client) []string {
	users, _ := c.Users(ctx)
	var out []string
	for _, u := range users {
		out = append(out, described(u.ID, u.Role))
	}
	return out
}

// loginLink is the document of signalbox login-link.
type loginLink struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expires_at"`
}

func (a *app) loginLinkCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "login-link",
		Short: "Print a link that logs you in to the pages, once",
		Long: "Print a link that logs the owner of the director in to its pages: once, within ten minutes, in one browser. It\n" +
			"works with the director's own token, which this command finds for the user who started the director.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (loginLink, error) {
			link, err := c.LoginLink(ctx)
			return loginLink{strings.TrimRight(c.URL(), "/") + link.Path, link.ExpiresAt.Format("2006-01-02T15:04:05Z07:00")}, err
		}, func(link loginLink) error { return a.say("%s", clean(link.URL)) }),
	}
}
