package cli

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/internal/config"
)

func (a *app) trustCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Trust the configuration of a working folder, as it is now",
		Long: "Trust a signalbox.yaml of a working folder, by default that of the current one, as it is now and where it is: from\n" +
			"then on its commands, jobs, director, token, store and the like count. Look at it first. A file that changes is asked\n" +
			"about again; one that --config names, and ~/.signalbox/config.yaml, is never asked about.",
		RunE: run(func(_ context.Context, args []string) error {
			path := "signalbox.yaml"
			if len(args) > 0 {
				path = args[0]
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(a.io.Dir, path)
			}
			does, err := config.Trust(path, a.io.Env)
			if err != nil {
				return err
			}
			if does == "" {
				return a.say("There is nothing to trust: %s is trusted, or sets nothing that is asked about.", clean(path))
			}
			return a.say("Trusted: %s (it %s)", clean(path), clean(does))
		}),
	}
}

// askTrust asks the person at the terminal about a file of the working folder.
func (a *app) askTrust(u config.Untrusted) (bool, error) {
	fmt.Fprintf(a.io.Err, "%s %s. Do you trust it, as it is now? [y/N] ", clean(u.Path), clean(u.Does()))
	line, err := bufio.NewReader(a.io.In).ReadString('\n')
	if err != nil && line == "" {
		return false, fmt.Errorf("no answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
