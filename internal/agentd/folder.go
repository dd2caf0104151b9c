package agentd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"

	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// oneFolder reports whether all slots work in the agent's folder: the further slots have folders
// of their own where it is no repository, because then nothing is in it that they would miss.
func (c *Config) oneFolder() bool {
	if c.Slots == 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTimeout)
	defer cancel()
	_, err := workspace.Open(ctx, c.WorkDir, c.Environ)
	return err == nil
}

// folderID identifies a folder among all agents of this host, those in containers which mount it
// included, until the host is started again. It tells nothing of the path.
func folderID(dir string) (string, error) {
	node, err := fileNode(dir)
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // "" serves as well: paths and nodes differ
	sum := sha256.Sum256([]byte(cmp.Or(proc.Identify(os.Getpid()).Boot, host) + "\n" + node))
	return hex.EncodeToString(sum[:12]), nil
}
