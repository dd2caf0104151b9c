package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// A token that another user put into an open folder is refused: that user
// knows it.
func TestASecretThatAStrangerMadeIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	path := filepath.Join(t.TempDir(), "token")
	made, err := config.EnsureSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := config.EnsureSecret(path); again != made || err != nil {
		t.Fatalf("%q, %v, want the same again", again, err)
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got, err := config.EnsureSecret(path); got != "" || err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("%q, %v, want an error with the remedy", got, err)
	}
}
