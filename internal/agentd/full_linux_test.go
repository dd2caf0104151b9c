package agentd_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/internal/testdisk"
)

// A real disk that is full, and one that became read-only.
func TestFullDiskRefusesTasks(t *testing.T) {
	dir := testdisk.New(t, "size=4m,mode=0700")
	cfg := config(t, "demo")
	cfg.DataDir = filepath.Join(dir, "data")
	a := start(t, cfg)
	task := fenced("queue-a", 1, "sleep 1ms")
	refused := func() {
		t.Helper()
		a.refused(task, 500, "storage_error")
		if code := a.do("GET", "/task/queue-a", nil, nil); code != 404 {
			t.Errorf("it is known nevertheless: %d", code)
		}
	}
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 2<<20+512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	refused()
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	a.submit(task) // the same claim may be retried
	a.end("queue-a")
	a.stop()
	a = start(t, cfg)
	task = fenced("queue-b", 2, "sleep 1ms")
	// The file system itself cannot become read-only while the ledger is open.
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	a.refused(task, 500, "storage_error")
}
