package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/testdisk"
)

// small mounts a file system of a few pages and inodes.
func small(t *testing.T, options string) string {
	t.Helper()
	dir := testdisk.New(t, options)
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func dataOf(t *testing.T, dir string) string {
	t.Helper()
	look := doctor.Data(doctor.Folder{Dir: dir, KeyFile: "secret.key", KeyEnv: "SIGNALBOX_TEST_DOCTOR_NO_KEY", Database: true})
	return strings.Join(said(look(t.Context(), false)), "\n")
}

func TestSmallDiskIsReported(t *testing.T) {
	text := dataOf(t, small(t, "size=1m,nr_inodes=20,mode=0700"))
	for _, part := range []string{"ok data: the data folder can be written", "fail data: 0.0 GiB left on the disk", "inodes left on the disk of the data folder"} {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
}

// No inode is left, although there is space.
func TestDiskWithoutInodesIsReported(t *testing.T) {
	dir := small(t, "size=100m,nr_inodes=4,mode=0700")
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), nil, 0o600); err != nil {
			break
		}
	}
	text := dataOf(t, dir)
	for _, part := range []string{"fail data: the data folder cannot be written: no space left on device", "fail data: 0 inodes left"} {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
}

func TestReadOnlyDiskIsReported(t *testing.T) {
	dir := small(t, "size=1m,mode=0700")
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, untouched := range []bool{false, true} {
		f := doctor.Folder{Dir: dir, KeyFile: "secret.key", KeyEnv: "SIGNALBOX_TEST_DOCTOR_NO_KEY", Untouched: untouched}
		if text := said(doctor.Data(f)(t.Context(), false))[0]; text != "fail data: the data folder cannot be written: read-only file system" {
			t.Errorf("untouched %t: %s", untouched, text)
		}
	}
}

// A network file system is unsuitable for SQLite.
func TestNetworkDiskIsReported(t *testing.T) {
	for kind, want := range map[int64]bool{0x6969: true, 0xff534d42: true, 0xef53: false, 0x01021994: false, 0x58465342: false} {
		if got := doctor.Network(kind); got != want {
			t.Errorf("%#x: %t", kind, got)
		}
	}
}
