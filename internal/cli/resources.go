package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// needsOf parses the values of --need, NAME or NAME=N, with each resource at most once.
func needsOf(flags []string) (map[string]int, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	needs := map[string]int{}
	for _, f := range flags {
		name, count, several := strings.Cut(f, "=")
		n := 1
		if several {
			var err error
			if n, err = strconv.Atoi(count); err != nil || n < 1 {
				return nil, usage("--need %s: want NAME or NAME=N with a whole number from 1, such as port=2", f)
			}
		}
		if _, twice := needs[name]; twice || name == "" {
			return nil, usage("--need %s: name each resource once, as NAME or NAME=N", f)
		}
		needs[name] = n
	}
	return needs, nil
}

// needsText lists needs; "" for none.
func needsText(needs map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		parts = append(parts, fmt.Sprintf("%d of %s", needs[name], name))
	}
	return strings.Join(parts, ", ")
}

func (a *app) resourcesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "Show the resources that tasks need, and which runs hold them",
		Long: `Show the resources that the director's configuration lists, such as a staging database or ports, and which runs hold
them. Then come the folders in which one run works at a time, and the branches onto which tasks land. With signalbox
submit --need NAME=N a task waits until N units are free; its run holds them until it ends.`,
		Example: `  signalbox resources
  signalbox submit --need staging-db --need port=2 "Run the integration tests"`,
	}
	return query(a, cmd, noArg((*client.Client).Resources), func(all api.Resources) {
		list(a, all.Resources, "Nothing is held, and the section resources of the director's configuration is empty.",
			[]string{"KIND", "NAME", "FREE", "WAITING", "HELD BY"}, func(v *api.Resource) []string {
				var holders []string
				for _, h := range v.Holders {
					text := strings.TrimSpace(h.Agent + " " + h.QueueID)
					if h.N > 1 {
						text += fmt.Sprintf(" (%d)", h.N)
					}
					holders = append(holders, text)
				}
				return []string{v.Kind, v.Name, fmt.Sprintf("%d of %d", v.Free, v.Capacity), strconv.Itoa(v.Waiting), strings.Join(holders, ", ")}
			})
	})
}
