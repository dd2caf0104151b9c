package agentaddr

import "net/netip"

// wrapping is a prefix of IPv6 addresses that contain an IPv4 address, which a
// gateway or tunnel on the way would reach.
type wrapping struct {
	prefix netip.Prefix
	at     []int // positions of the four bytes
	flip   byte  // bits that are flipped
}

var last = []int{12, 13, 14, 15}

var wrappings = []wrapping{
	{prefix: netip.MustParsePrefix("::/96"), at: last},                          // IPv4-compatible, obsolete
	{prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), at: last},                // translated by a host (RFC 2765)
	{prefix: netip.MustParsePrefix("64:ff9b::/96"), at: last},                   // NAT64 (RFC 6052)
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), at: last},                 // a network's own NAT64 prefix (RFC 8215),
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), at: []int{6, 7, 9, 10}},   // of length 96 or 48
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), at: []int{9, 10, 11, 12}}, // or 64
	{prefix: netip.MustParsePrefix("2002::/16"), at: []int{2, 3, 4, 5}},         // 6to4 (RFC 3056)
	{prefix: netip.MustParsePrefix("2001::/32"), at: last, flip: 0xff},          // Teredo (RFC 4380)
}

// reached are the addresses at which a connection to ip may end: ip itself
// and the addresses that it contains.
func reached(ip netip.Addr) []netip.Addr {
	ip = ip.Unmap().WithZone("")
	all := []netip.Addr{ip}
	if !ip.Is6() || ip.IsLoopback() || ip.IsUnspecified() {
		return all
	}
	b := ip.As16()
	for _, w := range wrappings {
		to := w.carried(b)
		if w.prefix.Contains(ip) && (w.prefix.Bits() != 48 || !to.IsUnspecified()) { // it is written in one of three ways
			all = append(all, to)
		}
	}
	if isISATAP(b) {
		all = append(all, netip.AddrFrom4([4]byte(b[12:])))
	}
	return all
}

func (w wrapping) carried(b [16]byte) netip.Addr {
	var four [4]byte
	for i, at := range w.at {
		four[i] = b[at] ^ w.flip
	}
	return netip.AddrFrom4(four)
}

// isISATAP reports whether an address is one of a tunnel through a site's
// IPv4 network (RFC 5214).
func isISATAP(b [16]byte) bool {
	return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
