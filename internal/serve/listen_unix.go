//go:build unix

package serve

import "syscall"

const addressInUse = syscall.EADDRINUSE
