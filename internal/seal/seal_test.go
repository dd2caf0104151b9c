package seal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/seal"
)

func TestSealedValueOpensOnlyInItsContext(t *testing.T) {
	s, err := seal.Load(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.Seal([]byte("hunter2"), "queue-a")
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatal("the sealed value shows the plain one")
	}
	if plain, err := s.Open(sealed, "queue-a"); err != nil || string(plain) != "hunter2" {
		t.Fatalf("Open = %q, %v", plain, err)
	}
	if _, err := s.Open(sealed, "queue-b"); err == nil {
		t.Fatal("it opened in another context")
	}
	if bytes.Equal(sealed, s.Seal([]byte("hunter2"), "queue-a")) {
		t.Fatal("sealing twice gives the same bytes")
	}
}

func TestKeyFileIsPrivateAndKept(t *testing.T) {
	dir := t.TempDir()
	first, err := seal.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "secret.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file: %v, %v; want mode 0600", info, err)
	}
	again, err := seal.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Open(first.Seal([]byte("x"), "c"), "c"); err != nil {
		t.Fatalf("the key changed between two loads: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Load(dir, ""); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("a key that others can read: %v; want an error with the remedy", err)
	}
}

func TestAKeyThatAStrangerMadeIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	dir := t.TempDir()
	if _, err := seal.Load(dir, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, seal.KeyFile), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Load(dir, ""); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Fatalf("a key of another user: %v; want an error with the remedy", err)
	}
}

func TestKeyFromEnvironment(t *testing.T) {
	hexKey := strings.Repeat("ab", 32)
	a, err := seal.Load(t.TempDir(), hexKey)
	if err != nil {
		t.Fatal(err)
	}
	b, err := seal.Load(t.TempDir(), hexKey)
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest([]byte("x")) != b.Digest([]byte("x")) {
		t.Fatal("two directors with one key make different digests")
	}
	for _, bad := range []string{"short", strings.Repeat("zz", 32), strings.Repeat("ab", 31)} {
		if _, err := seal.Load(t.TempDir(), bad); err == nil || !strings.Contains(err.Error(), seal.EnvKey) {
			t.Fatalf("key %q: %v; want an error that names %s", bad, err, seal.EnvKey)
		}
	}
}
