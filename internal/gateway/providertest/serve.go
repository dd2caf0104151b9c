package providertest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Serve serves h until the test ends; gone reports whether no connection is open.
func Serve(t *testing.T, h http.Handler) (url string, gone func() bool) {
	var open atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, func() bool { return open.Load() == 0 }
}

// Signal is a Fixture's Hanging for an upstream that sends to c.
func Signal(c <-chan struct{}) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatal("the call did not come to the upstream")
		}
	}
}
