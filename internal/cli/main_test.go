package cli_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// The fake director does not prove that it knows the token; e2e tests that the
// command line asks for that proof.
func TestMain(m *testing.M) {
	os.Setenv(handshake.EnvProof, "off")
	goleak.VerifyTestMain(m)
}
