package agentd

import (
	"os"

	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.MNT_RDONLY

// syncData puts what was written on the disk; macOS has no lesser call that
// reaches the platter.
func syncData(f *os.File) error { return f.Sync() }
