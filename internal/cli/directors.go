package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) directorsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "directors",
		Short: "List the directors over the store, and the agents of each",
		Long: "List the directors over the store: which of them live, and the agents that each dispatches to. Any of them\n" +
			"answers for any task; the one that answered is marked with a star. One that died is shown for a day.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Directors, error) {
			all, err := c.Directors(ctx)
			return api.Directors{Directors: all}, err
		}, a.directorTable),
	}
}

// shownAgents bounds the names of agents in a line of the table.
const shownAgents = 5

func (a *app) directorTable(all api.Directors) error {
	rows := [][]string{{"INSTANCE", "STATE", "VERSION", "UP FOR", "URL", "AGENTS"}}
	for _, d := range all.Directors {
		name, state, up := d.Instance, "alive", ago(a.io.Now().Sub(d.StartedAt))
		if d.Draining {
			state = "draining"
		}
		if d.This {
			name += " *"
		}
		if !d.Alive {
			state, up = "gone", "-"
			if d.LeaseExpires != nil {
				state = "gone for " + ago(a.io.Now().Sub(*d.LeaseExpires))
			}
		}
		agents := strings.Join(d.Agents[:min(len(d.Agents), shownAgents)], ", ")
		if more := len(d.Agents) - shownAgents; more > 0 {
			agents += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, []string{name, state, d.Version, up, d.URL, cmp.Or(agents, "-")})
	}
	return a.table(rows)
}
