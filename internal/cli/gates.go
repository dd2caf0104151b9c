package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) gatesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gates",
		Short: "Show which gates are closed, and what waits there",
		Long: `Show which gates are closed, until when, and what waits there: accounts at their provider's limit or signed out,
		agents that failed, budgets that are used up, tool queues that their upstream closed, and times until which tasks are
		parked. Gates that need a person come first.`,
	}
	return query(a, cmd, noArg((*client.Client).Gates), func(all api.Gates) {
		list(a, all.Gates, "Nothing is closed.",
			[]string{"KIND", "NAME", "STATE", "UNTIL", "WAITING", "PARKED", "WHY"}, func(g *api.ClosedGate) []string {
				return []string{g.Kind, g.Name, g.State, a.formatTimePtr(g.Until), fmt.Sprint(g.Waiting), fmt.Sprint(g.Parked), g.Text}
			})
		for i := range all.Gates {
			a.note("%s: %s.", capitalize(strings.TrimSpace(clean(all.Gates[i].Kind+" "+all.Gates[i].Name))), clean(all.Gates[i].Cure))
		}
	})
}
