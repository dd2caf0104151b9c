package agentaddr_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentaddr"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string][2]bool{ // untrusted, trusted
		"127.0.0.1": {true, true}, "127.255.0.9": {true, true}, "::1": {true, true}, "::ffff:127.0.0.1": {true, true},
		"10.0.0.5": {false, true}, "192.168.1.1": {false, true}, "8.8.8.8": {false, true}, "fd00::5": {false, true}, "2001:db8::1": {false, true},
		"169.254.169.254": {}, "169.254.0.1": {}, "fe80::1": {}, "fe80::1%eth0": {}, "::ffff:169.254.169.254": {}, "64:ff9b::a9fe:a9fe": {}, "::a9fe:a9fe": {},
		"100.100.100.200": {}, "192.0.0.192": {}, "168.63.129.16": {}, "fd00:ec2::254": {}, "fd20:ce::254": {},
		"::ffff:0:a9fe:a9fe": {}, "64:ff9b:1::a9fe:a9fe": {}, "64:ff9b:1:a9fe:a9:fe00::": {}, "64:ff9b:1:0:a9:fea9:fe00:0": {}, "2002:a9fe:a9fe::1": {},
		"2001:0:1234::5601:5601": {}, "fd00::5efe:a9fe:a9fe": {}, "2001:db8::200:5efe:a9fe:a9fe": {}, "64:ff9b::6464:64c8": {},
		"64:ff9b::808:808": {false, true}, "64:ff9b:1::808:808": {false, true}, "64:ff9b::": {}, "2002:808:808::1": {false, true}, "64:ff9b::7f00:1": {false, true}, "::7f00:1": {false, true},
		"0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {},
	} {
		ip := netip.MustParseAddr(text)
		for i, trusted := range []bool{false, true} {
			if err := agentaddr.Check(ip, trusted); (err == nil) != want[i] {
				t.Errorf("%s, trusted %v: %v", text, trusted, err)
			}
		}
	}
	if agentaddr.Check(netip.Addr{}, true) == nil {
		t.Error("no address at all is allowed")
	}
}

// The dialer checks the address to which it is about to connect.
func TestControlStopsTheDial(t *testing.T) {
	d := net.Dialer{Control: agentaddr.Control(true)}
	if c, err := d.DialContext(t.Context(), "tcp", "169.254.169.254:80"); err == nil {
		c.Close()
		t.Error("connected to the metadata address")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d.Control = agentaddr.Control(false)
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2001:db8::1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.0.1": false, "fd00::1": false,
		"100.64.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "64:ff9b::a00:1": false, "2001:0:1::f5ff:fffe": false, "64:ff9b::808:808": true, "64:ff9b:1::808:808": true, "64:ff9b:1::a00:1": false, "169.254.169.254": false, "0.0.0.0": false, "::ffff:10.0.0.1": false,
	} {
		if got := agentaddr.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
