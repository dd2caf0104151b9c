package agentaddr_test

import (
	"net/netip"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentaddr"
)

// FuzzAddresses: however a metadata service's address is wrapped into an IPv6
// address, it is refused. The address of another host is refused without a
// token. A public address is never this host or in a private network.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::ffff:169.254.169.254", "0.0.0.0", "255.255.255.255", "10.0.0.1", "8.8.8.8", "100.64.0.1", "fd00:ec2::254", "2001:0:a9fe:a9fe::", "ff02::1"} {
		a := netip.MustParseAddr(s).As16()
		f.Add(a[:])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) != 16 {
			return
		}
		ip := netip.AddrFrom16([16]byte(raw))
		never, trusted, untrusted := agentaddr.CheckIP(ip), agentaddr.Check(ip, true), agentaddr.Check(ip, false)
		if never != nil && (trusted == nil || untrusted == nil) {
			t.Fatalf("%s is always forbidden (%v), and an agent may have it", ip, never)
		}
		if trusted != nil && untrusted == nil {
			t.Fatalf("%s: a token takes a right away", ip)
		}
		if untrusted == nil && !ip.Unmap().IsLoopback() {
			t.Fatalf("%s is another host, and needs no token", ip)
		}
		if plain := ip.Unmap(); agentaddr.Public(ip) && (plain.IsLoopback() || plain.IsPrivate() || plain.IsLinkLocalUnicast() || plain.IsUnspecified() || plain.IsMulticast()) {
			t.Fatalf("%s counts as public", ip)
		}
		for _, wrapped := range wrap([4]byte{169, 254, 169, 254}, raw) {
			if agentaddr.CheckIP(wrapped) == nil {
				t.Fatalf("%s leads to a metadata service, and is allowed", wrapped)
			}
		}
	})
}

// wrap wraps an IPv4 address into IPv6 addresses as gateways decode them; the
// other bytes are arbitrary.
func wrap(v4 [4]byte, other []byte) []netip.Addr {
	var mapped, nat64, sixToFour [16]byte
	copy(mapped[10:], []byte{0xff, 0xff})
	copy(mapped[12:], v4[:])
	copy(nat64[:], []byte{0, 0x64, 0xff, 0x9b})
	copy(nat64[12:], v4[:])
	copy(sixToFour[:], other)
	copy(sixToFour[:], []byte{0x20, 0x02})
	copy(sixToFour[2:], v4[:])
	return []netip.Addr{netip.AddrFrom4(v4), netip.AddrFrom16(mapped), netip.AddrFrom16(nat64), netip.AddrFrom16(sixToFour)}
}
