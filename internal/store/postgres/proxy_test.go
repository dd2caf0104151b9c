package postgres

import (
	"net/url"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/chaos"
)

// newProxy returns a proxy in front of the server of an address, and the address of the proxy.
func newProxy(t *testing.T, address string) (*chaos.Proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := chaos.New(t, u.Host, chaos.Options{})
	u.Host = p.Addr
	return p, u.String()
}

// ofBatch reports whether a message ends a batch.
func ofBatch(said []byte) bool { return strings.Contains(string(said), name(stMetaStep)+"\x00") }
