package agentd_test

import (
	"os"
	"testing"
	"time"
)

// waitFile returns once the file exists. Programs of others have no other way
// to say how far they are.
func waitFile(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(long)
	for time.Now().Before(deadline) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never appeared", path)
}
