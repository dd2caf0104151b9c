package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// codingCLIs are the programs for which signalbox up starts an agent.
var codingCLIs = []string{"claude", "codex", "opencode"}

// localChecks are those that need no director. The configuration is nil where
// it is wrong.
func (a *app) localChecks(ctx context.Context, chosen []config.Flag) (*config.Config, []api.Check) {
	cfg, found := a.checkConfig(chosen)
	if found.State == checkFail {
		return nil, []api.Check{found, a.checkPath()}
	}
	checks := []api.Check{found, checkData(cfg.Data), a.checkPath()}
	if a.roles.CLIs != nil {
		checks = append(checks, a.roles.CLIs(ctx, cfg)...)
	}
	return &cfg, checks
}

func (a *app) checkConfig(chosen []config.Flag) (config.Config, api.Check) {
	const area = "config"
	cfg, err := a.load(chosen)
	var many config.Problems
	switch {
	case errors.As(err, &many):
		text := strings.Join(strings.Fields(err.Error()), " ") // several lines become one
		return cfg, api.Check{Area: area, State: checkFail, Text: text, Cure: "correct the file; docs/configuration.md has the keys"}
	case err != nil:
		return cfg, api.Check{Area: area, State: checkFail, Text: err.Error(), Cure: "see that the file can be read"}
	case cfg.File == "":
		return cfg, api.Check{Area: area, State: checkOK, Text: "there is no configuration file: the defaults hold"}
	}
	for _, n := range cfg.Tools.Notes {
		if n.Warning {
			return cfg, api.Check{
				Area: area, State: checkWarn, Text: cfg.File + " is right, with notes on tools, such as " + n.String(),
				Cure: "a start of the director logs all of them",
			}
		}
	}
	return cfg, api.Check{Area: area, State: checkOK, Text: cfg.File + " is right"}
}

// checkData looks at the data folder of the configuration, which the director
// makes where it is not there.
func checkData(dir string) api.Check {
	const area = "data"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return api.Check{Area: area, State: checkOK, Text: dir + " is not there: a director makes it"}
	case err != nil:
		return api.Check{Area: area, State: checkFail, Text: "the data folder: " + err.Error(), Cure: "choose another one with --data, or give it back to you"}
	case !info.IsDir():
		return api.Check{Area: area, State: checkFail, Text: dir + " is no folder", Cure: "choose another one with --data"}
	case info.Mode().Perm()&0o077 != 0:
		return api.Check{Area: area, State: checkWarn, Text: dir + " can be read by others", Cure: "chmod 700 " + dir}
	}
	return api.Check{Area: area, State: checkOK, Text: dir + " is there, and closed to others"}
}

func (a *app) checkPath() api.Check {
	const area = "agents"
	var have []string
	for _, name := range codingCLIs {
		if a.onPath(name) {
			have = append(have, name)
		}
	}
	if len(have) == 0 {
		return api.Check{Area: area, State: checkOK, Text: "no coding CLI (" + strings.Join(codingCLIs, ", ") + ") on PATH: signalbox up starts the demo agent"}
	}
	return api.Check{Area: area, State: checkOK, Text: "on PATH, for signalbox up: " + strings.Join(have, ", ")}
}

func (a *app) onPath(name string) bool {
	path, _ := a.io.Env("PATH")
	for _, dir := range filepath.SplitList(path) {
		info, err := os.Stat(filepath.Join(dir, name))
		if filepath.IsAbs(dir) && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
