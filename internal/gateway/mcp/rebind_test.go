package mcp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/agentaddr/addrtest"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestAttackServerNameResolvesToMetadataAddress: if the name of a server
// resolves to a cloud metadata address, which hands out credentials, no
// request is sent there.
func TestAttackServerNameResolvesToMetadataAddress(t *testing.T) {
	for _, to := range []string{"169.254.169.254", "fd00:ec2::254", "0.0.0.0", "64:ff9b::a9fe:a9fe"} {
		for transport, scheme := range map[toolconf.Transport]string{toolconf.HTTP: "http", toolconf.SSE: "http", toolconf.WebSocket: "ws"} {
			t.Run(to+" "+string(transport), func(t *testing.T) {
				addrtest.Use(t, netip.MustParseAddr(to))
				h := start(t, toolconf.Server{Name: "srv", Transport: transport, URL: scheme + "://tools.evil.example:1/mcp", Shared: true}, mcp.Options{Backoff: time.Hour})
				s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
				if !strings.Contains(s.Error, "must never be contacted") && !strings.Contains(s.Error, "not the address of a host") {
					t.Error(s.Error)
				}
			})
		}
	}
}
