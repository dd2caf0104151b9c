package agentd

import (
	"os"

	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.MNT_RDONLY

// syncData makes written data durable; macOS has no weaker call that reaches the platter.
func syncData(f *os.File) error { return f.Sync() }
