//go:build unix

package testport

import "syscall"

type handle = int

const none handle = -1

func closeSocket(s handle) error { return syscall.Close(s) }
