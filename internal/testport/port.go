// Package testport reserves ports for servers of tests that stop and restart
// at the same address.
package testport

import (
	"fmt"
	"net"
	"syscall"
)

// Reserved is a TCP port of 127.0.0.1 that the system assigns to no other
// process until Release. While no server listens there, connections are
// refused. Every server that sets SO_REUSEADDR can listen there: net.Listen,
// PostgreSQL and Redis do.
type Reserved struct {
	Port   int
	socket handle
}

// Reserve takes a free port. A port that is merely free, or whose server is
// restarting, could be assigned to another process.
func Reserve() (*Reserved, error) {
	syscall.ForkLock.RLock() // no child process may inherit it
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	port, err := bind(socket)
	if err != nil {
		_ = closeSocket(socket)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Reserved{Port: port, socket: socket}, nil
}

// bind binds the socket and never listens on it.
func bind(socket handle) (int, error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return at.(*syscall.SockaddrInet4).Port, nil
}

// Addr is the host and port.
func (r *Reserved) Addr() string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(r.Port)) }

// Release frees the port. It may be called twice, and on nil.
func (r *Reserved) Release() {
	if r != nil && r.socket != none {
		_ = closeSocket(r.socket)
		r.socket = none
	}
}
