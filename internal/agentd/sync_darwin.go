package agentd

import (
	"os"

	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.MNT_RDONLY

// syncData makes written data durable; macOS has no cheaper call that reaches the disk.
func syncData(f *os.File) error { return f.Sync() }
