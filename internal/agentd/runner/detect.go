package runner

import (
	"context"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// Found is a coding CLI on this machine.
type Found struct {
	Kind    string `json:"kind"` // claude, codex or opencode
	Path    string `json:"path"`
	Version string `json:"version"` // empty when it would not say
}

var versionForm = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`)

// Detect finds the coding CLIs on PATH and asks each for its version, for at
// most 10 s.
func Detect() []Found {
	kinds := []string{"claude", "codex", "opencode"}
	all := make([]Found, len(kinds))
	var wg sync.WaitGroup
	for i, kind := range kinds {
		path, err := exec.LookPath(kind)
		if err != nil {
			continue
		}
		all[i] = Found{Kind: kind, Path: path}
		wg.Go(func() { all[i].Version = version(path) })
	}
	wg.Wait()
	var found []Found
	for _, f := range all {
		if f.Kind != "" {
			found = append(found, f)
		}
	}
	return found
}

func version(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return versionForm.FindString(string(out))
}
