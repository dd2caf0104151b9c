package cli_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// The director of these tests is none that proves what it knows; that the
// command line asks for it is seen in e2e.
func TestMain(m *testing.M) {
	os.Setenv(handshake.EnvProof, "off")
	goleak.VerifyTestMain(m)
}
