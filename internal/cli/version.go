package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return a.print(v, func() error {
				return a.say("signalbox %s (%s, %s/%s)", v["version"], v["go"], v["os"], v["arch"])
			})
		},
	}
}

func (a *app) version() string {
	if a.roles.Version == "" {
		return "dev"
	}
	return a.roles.Version
}
