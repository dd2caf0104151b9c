package agentd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

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
