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

// OnPath finds the coding CLIs on PATH, without their versions.
func OnPath() (found []Found) {
	for _, kind := range []string{"claude", "codex", "opencode"} {
		if path, err := exec.LookPath(kind); err == nil {
			found = append(found, Found{Kind: kind, Path: path})
		}
	}
	return found
}

// Detect asks each of them for its version besides, for at most 10 s: it starts
// them.
func Detect() []Found {
	found := OnPath()
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() { found[i].Version = version(found[i].Path) })
	}
	wg.Wait()
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
