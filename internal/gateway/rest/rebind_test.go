package rest_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentaddr/addrtest"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// If a name resolves to different addresses over time, each connection is
// checked by its own address.
func TestAttackDNSRebinding(t *testing.T) {
	var hits atomic.Int32
	page, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		w.Header().Set("Connection", "close") // so that the next request resolves the name again
		ok(w, r)
	})
	port := page[strings.LastIndex(page, ":"):]
	ask := func(reach rest.EgressPolicy, next ...string) (errs []string) {
		t.Helper()
		addrs := make([]netip.Addr, len(next))
		for i, a := range next {
			addrs[i] = netip.MustParseAddr(a)
		}
		hits.Store(0)
		names := addrtest.Use(t, addrs...)
		client := rest.NewClient(reach)
		defer client.Close()
		for range next {
			_, err := client.Do(t.Context(), &rest.Request{Method: "GET", URL: "http://tools.evil.example" + port, Header: http.Header{}}, 1<<20)
			errs = append(errs, fmt.Sprint(err))
		}
		if names.Asked() < len(next) {
			t.Errorf("the name was looked up %d times only", names.Asked())
		}
		return errs
	}
	forbidden := []string{"169.254.169.254", "0.0.0.0", "fd00:ec2::254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"}
	for name, c := range map[string]struct {
		reach rest.EgressPolicy
		next  []string
	}{
		"a host of the configuration":  {rest.EgressPolicy{Named: []string{"tools.evil.example"}}, append([]string{"127.0.0.1"}, forbidden...)},
		"where private ones are asked": {rest.EgressPolicy{Private: true}, append([]string{"127.0.0.1"}, forbidden...)},
	} {
		errs := ask(c.reach, c.next...)
		if errs[0] != "<nil>" {
			t.Errorf("%s: %s", name, errs[0])
		}
		for i, said := range errs[1:] {
			if !strings.Contains(said, "must never be contacted") && !strings.Contains(said, "not the address of a host") {
				t.Errorf("%s, then at %s: %s", name, c.next[i+1], said)
			}
		}
		if hits.Load() != 1 {
			t.Errorf("%s was asked %d times", name, hits.Load())
		}
	}
	for i, said := range ask(rest.EgressPolicy{}, "127.0.0.1", "::1", "10.0.0.1", "100.64.0.1", "::ffff:127.0.0.1", "169.254.169.254") {
		if !strings.Contains(said, "not in the public network") && !strings.Contains(said, "must never be contacted") {
			t.Errorf("an unknown host, answer %d: %s", i, said)
		}
	}
	if hits.Load() != 0 {
		t.Error("this host got a request by a name of the public network")
	}
}

// Unusual spellings of an address lead to the same address as the plain one.
func TestAttackUnusualAddressForms(t *testing.T) {
	var hits atomic.Int32
	page, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) { hits.Add(1); ok(w, r) })
	port := page[strings.LastIndex(page, ":"):]
	client := rest.NewClient(rest.EgressPolicy{})
	defer client.Close()
	for _, host := range []string{
		"2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "LOCALHOST.", "127.0.0.1.", "127.0.0.1%00",
		"user:password@127.0.0.1", "public.example@127.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "[fe80::1%25lo]",
		"2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:a9fe:a9fe]", "169.254.169.254.",
	} {
		_, err := client.Do(t.Context(), &rest.Request{Method: "GET", URL: "http://" + host + port + "/", Header: http.Header{}}, 1<<20)
		if err == nil {
			t.Errorf("%s was asked", host)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("this host was asked %d times", hits.Load())
	}
}
