package testdisk_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testdisk"
)

func TestADiskIsFullUntilThereIsRoom(t *testing.T) {
	var dir string
	t.Run("while it is there", func(t *testing.T) {
		dir = testdisk.New(t, "size=1m,mode=0700")
		one := func() error { return os.WriteFile(filepath.Join(dir, "one"), []byte("x"), 0o600) }
		balloon := filepath.Join(dir, "balloon")
		testdisk.Fill(t, balloon)
		if info, err := os.Stat(balloon); err != nil || info.Size() < 1<<19 || info.Size() > 1<<20 {
			t.Errorf("of 1 MiB it took %v, %v", info.Size(), err)
		}
		if err := one(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v on a full disk", err)
		}
		if err := os.Remove(balloon); err != nil {
			t.Fatal(err)
		}
		if err := one(); err != nil {
			t.Errorf("%v with room again", err)
		}
	})
	if _, err := os.Stat(dir); dir != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the disk outlives its test: %v", err)
	}
}
