package testport

import "syscall"

type handle = syscall.Handle

const none = syscall.InvalidHandle

func closeSocket(s handle) error { return syscall.Closesocket(s) }
