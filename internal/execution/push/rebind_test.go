package push_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/agentaddr/addrtest"
)

// If the name of an agent starts to resolve to a cloud metadata address, that address gets no request: the
// address of each connection is checked.
func TestAttackAgentNameResolvesToMetadataAddress(t *testing.T) {
	for _, to := range []string{"169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"} {
		t.Run(to, func(t *testing.T) {
			names := addrtest.Use(t, netip.MustParseAddr(to))
			h := newFixture(t)
			h.put(signalbox.Agent{Name: "moved", Kind: "demo", URL: "http://agent.evil.example:1", Slots: 1}, "")
			h.start()
			h.await("it is refused", func() bool { return strings.Contains(h.live("moved").Message, "must never be contacted") })
			h.stop()
			if names.Asked() == 0 {
				t.Error("its name was not looked up")
			}
		})
	}
}
