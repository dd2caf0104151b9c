// Package agentaddr decides which network addresses an agent may have, and
// which addresses must never be contacted. The director checks when an agent
// registers, and the dispatcher again when it dials, because a name may resolve
// to another address by then. HTTP calls of tools are checked as well.
package agentaddr

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// metadata are addresses, besides the link-local ones, at which clouds hand
// out credentials to any client inside.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS over IPv6
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud over IPv6
}

// shared is the address space behind the NAT of a provider (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// Check returns the reason why an agent may not have the address ip, or nil.
// Link-local, metadata, unspecified and multicast addresses are always
// refused. trusted says that a token vouches for the agent; otherwise the
// address must be a loopback address.
func Check(ip netip.Addr, trusted bool) error {
	if err := CheckIP(ip); err != nil {
		return err
	}
	for _, to := range reached(ip) {
		if !trusted && !to.IsLoopback() {
			return fmt.Errorf("%s is not on this host: an agent elsewhere needs a token that vouches for it", to)
		}
	}
	return nil
}

// CheckIP returns the reason why the address ip must never be contacted, or
// nil: link-local and metadata addresses hand out credentials to any client
// inside, and unspecified and multicast addresses belong to no host.
func CheckIP(ip netip.Addr) error {
	for _, to := range reached(ip) {
		switch {
		case !to.IsValid():
			return fmt.Errorf("it is not an address")
		case to.IsLinkLocalUnicast() || isMetadata(to):
			return fmt.Errorf("%s is a link-local or cloud metadata address, which must never be contacted", to)
		case to.IsUnspecified() || to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return fmt.Errorf("%s is not the address of a host", to)
		}
	}
	return nil
}

// Public reports whether ip is neither this host nor in a private network.
func Public(ip netip.Addr) bool {
	for _, to := range reached(ip) {
		if to.IsLoopback() || to.IsPrivate() || shared.Contains(to) {
			return false
		}
	}
	return CheckIP(ip) == nil
}

func isMetadata(ip netip.Addr) bool {
	return slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Control returns a function for net.Dialer.Control that refuses connections
// to addresses that an agent may not have. It sees the resolved address.
func Control(trusted bool) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return Check(to.Addr(), trusted)
	}
}

// Refuse is also for net.Dialer.Control: it refuses connections to addresses
// that must never be contacted.
func Refuse(network, address string, c syscall.RawConn) error {
	return Control(true)(network, address, c)
}
