package agentd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// folderID identifies a folder among all agents of this host, including those in containers that
// mount it, until the host restarts. It does not reveal the path.
func folderID(dir string) (string, error) {
	node, err := fileNode(dir)
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // "" is fine: paths and nodes differ
	sum := sha256.Sum256([]byte(cmp.Or(proc.Identify(os.Getpid()).Boot, host) + "\n" + node))
	return hex.EncodeToString(sum[:12]), nil
}
