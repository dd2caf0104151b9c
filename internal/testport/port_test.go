package testport_test

import (
	"net"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testport"
)

// TestAReservedPortIsNotAssignedAgain: a server listens at its reserved port,
// which refuses connections while the server is stopped. The server listens
// there again, although others took more ports than the system has in
// between.
func TestAReservedPortIsNotAssignedAgain(t *testing.T) {
	reserved, err := testport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.Release()
	for range 2 {
		l, err := net.Listen("tcp", reserved.Addr())
		if err != nil {
			t.Fatalf("its server cannot listen there: %v", err)
		}
		made, err := net.Dial("tcp", reserved.Addr())
		if err != nil {
			t.Fatalf("its server is not reachable: %v", err)
		}
		_ = made.Close()
		_ = l.Close()
		if made, err := net.Dial("tcp", reserved.Addr()); err == nil {
			_ = made.Close()
			t.Fatal("another server answers there while its server is stopped")
		}
		for range 70_000 { // there are 65,535
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if _, port, _ := net.SplitHostPort(other.Addr().String()); net.JoinHostPort("127.0.0.1", port) == reserved.Addr() {
				t.Fatal("another server got its port")
			}
			_ = other.Close()
		}
	}
	reserved.Release()
	reserved.Release()
}
