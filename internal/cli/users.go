package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) usersCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "users", Short: "List the people who can log in"}
	cmd.AddCommand(a.setUserCmd(), a.removeUserCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Users, error) {
		users, err := c.Users(ctx)
		return api.Users{Users: users}, err
	}, a.userTable)
}

func (a *app) userTable(all api.Users) {
	list(a, all.Users, "No users. signalbox users set ID --role admin makes the first, and closes the director.",
		[]string{"ID", "EMAIL", "ROLE", "AGENTS", "STATE"}, func(u *api.User) []string {
			state := "active"
			if u.Disabled {
				state = "disabled"
			}
			return []string{u.ID, u.Email, u.Role, agentLimits(u.Agents), state}
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
		Long: "Make or change a user. What is not given stays as it is. For a new user, and with --password, it asks for\n" +
			"the password on the terminal, twice and without showing it; elsewhere --password-stdin reads it. The first\n" +
			"user with the role admin closes the director.",
		ValidArgsFunction: a.offer(userIDs),
	}
	f := cmd.Flags()
	f.StringVar(&s.email, "email", "", "its `address`, for the record of what it did")
	f.Var(newChoice(&s.role, "", "admin", "user"), "role", "what it may do: admin (everything) or user (read, submit, cancel, tool; default)")
	f.StringSliceVar(&s.agents, "limit-agents", nil, "the only `agents` that it may use and see, with commas; \"\" for all")
	f.BoolVar(&s.disabled, "disabled", false, "let it log in no more, and refuse its tokens; --disabled=false undoes it")
	f.BoolVar(&s.ask, "password", false, "ask for a new password")
	f.BoolVar(&s.onStandardInput, "password-stdin", false, "read the password from standard input")
	var wasOpen bool
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (none api.User, err error) {
		req, err := a.putUser(ctx, c, f, &s, args[0])
		if err != nil {
			return none, err
		}
		wasOpen = open(ctx, c)
		return c.PutUser(ctx, args[0], req)
	}, func(got api.User) {
		if wasOpen && got.Role == string(signalbox.RoleAdmin) {
			a.note("%s", closing)
		}
		a.say("User %s (%s)", clean(got.ID), clean(got.Role))
	})
}

// putUser makes the request of what was typed.
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
	if flags.Changed("limit-agents") { // none is all, and not nil
		req.Agents = slices.DeleteFunc(append([]string{}, s.agents...), func(name string) bool { return name == "" })
	}
	if flags.Changed("disabled") {
		req.Disabled = &s.disabled
	}
	isNew := !slices.ContainsFunc(users, func(u api.User) bool { return u.ID == id })
	req.Password, err = a.newPassword(ctx, s, isNew)
	return req, err
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
	return removal(a, &cobra.Command{Use: "remove ID", Short: "Forget a user, with its tokens", ValidArgsFunction: a.offer(userIDs)},
		"The user %s is forgotten, with its tokens. Remove it?", "removed", (*client.Client).RemoveUser)
}

func userIDs(ctx context.Context, c *client.Client) []string {
	users, _ := c.Users(ctx)
	return described(users, func(u *api.User) (string, string) { return u.ID, u.Role })
}

// loginLink is the document of signalbox login-link.
type loginLink struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expires_at"`
}

func (a *app) loginLinkCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:   "login-link",
		Short: "Print a link that logs you in to the pages, once",
		Long: "Print a link that logs the owner of the director in to its pages: once, within ten minutes, in one browser. It\n" +
			"works with the director's own token, which this command finds for the user who started the director.",
	}, func(ctx context.Context, c *client.Client, _ []string) (loginLink, error) {
		link, err := c.LoginLink(ctx)
		return loginLink{strings.TrimRight(c.URL(), "/") + link.Path, link.ExpiresAt.Format(time.RFC3339)}, err
	}, func(link loginLink) { a.say("%s", clean(link.URL)) })
}
