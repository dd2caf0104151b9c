package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
)

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
