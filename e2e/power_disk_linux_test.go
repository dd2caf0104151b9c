package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// powerDisk is an ext4 file system for one test, in a file behind a loop
// device, whose power can be cut: data that was not synced is then lost, as
// after a real power cut, and the file system's journal is replayed when the
// power is back.
type powerDisk struct {
	t          *testing.T
	image, dir string
	mounted    bool
}

// newPowerDisk mounts a disk, or skips the test and says what the machine
// lacks. The disk is removed with the test or, if that is killed, by its
// reaper.
func newPowerDisk(t *testing.T, mib int64) *powerDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("no power cuts: only root can mount a disk of its own")
	}
	for _, program := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no power cuts: there is no %s here", program)
		}
	}
	root, err := os.MkdirTemp("", "disk") // short: it is part of a socket's path
	if err != nil {
		t.Fatal(err)
	}
	d := &powerDisk{t: t, image: filepath.Join(root, "image"), dir: filepath.Join(root, "m")}
	t.Cleanup(d.remove)
	if err := os.Chmod(root, 0o711); err != nil { // PostgreSQL's user needs to pass through it
		t.Fatal(err)
	}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.image, mib<<20); err != nil { // sparse: it only takes what is written
		t.Fatal(err)
	}
	if said, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, said)
	}
	if err := d.mount(); err != nil {
		t.Skipf("no power cuts: no loop device can be mounted here: %v", err)
	}
	return d
}

// mount takes a free loop device, which is released with the mount.
func (d *powerDisk) mount() error {
	said, err := exec.Command("mount", "-t", "ext4", "-o", "loop", d.image, d.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
	}
	d.mounted = true
	// A sandbox of another test that binds / must not hold it.
	return unix.Mount("", d.dir, "", unix.MS_UNBINDABLE, "")
}

// settle syncs everything that is written so far, as after a while without
// work.
func (d *powerDisk) settle() {
	d.t.Helper()
	if err := d.on(unix.Syncfs); err != nil {
		d.t.Fatal(err)
	}
}

// shutdownIoctl is EXT4_IOC_SHUTDOWN; with noLogFlush the file system's
// journal is not flushed either.
const (
	shutdownIoctl = 0x8004587d
	noLogFlush    = 2
)

// cut cuts the power. Processes with open files on the disk get errors from
// now on.
func (d *powerDisk) cut() {
	d.t.Helper()
	if err := d.on(func(fd int) error { return unix.IoctlSetPointerInt(fd, shutdownIoctl, noLogFlush) }); err != nil {
		d.t.Fatalf("cut the power of %s: %v", d.dir, err)
	}
}

func (d *powerDisk) on(do func(fd int) error) error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(int(f.Fd()))
}

// back restores the power. All processes that used the disk must be dead.
func (d *powerDisk) back() {
	d.t.Helper()
	if err := d.unmount(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.mount(); err != nil {
		d.t.Fatalf("mount it again: %v", err)
	}
}

func (d *powerDisk) unmount() error {
	d.mounted = false
	var err error
	testkit.Within(long, func() bool {
		err = unix.Unmount(d.dir, 0)
		return !errors.Is(err, unix.EBUSY) // a killed process's files are closed a moment after its end
	})
	if err != nil {
		return fmt.Errorf("unmount %s: %w", d.dir, err)
	}
	return d.released()
}

// released waits until nothing uses the file system any more. A process with
// its own mount namespace, such as a sandbox, begins with a copy of all
// mounts: until it has released it, the next mount would find the file system
// still there and without power, and reuse it.
func (d *powerDisk) released() error {
	if !testkit.Within(long, func() bool { return !d.attached() }) {
		return fmt.Errorf("%s is unmounted, and some process with mounts of its own still holds it", d.dir)
	}
	return nil
}

// attached reports whether a loop device has the image.
func (d *powerDisk) attached() bool {
	images, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	return slices.ContainsFunc(images, func(path string) bool {
		image, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(image)) == d.image
	})
}

func (d *powerDisk) remove() {
	if d.mounted {
		if err := d.unmount(); err != nil {
			d.t.Error(err)
			_ = unix.Unmount(d.dir, unix.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(filepath.Dir(d.dir)); err != nil {
		d.t.Error(err)
	}
}

// unmountAllOf unmounts what a killed test run has left mounted in its
// folder, innermost first.
func unmountAllOf(dir string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	for _, point := range slices.Backward(points) {
		_ = syscall.Unmount(point, syscall.MNT_DETACH) // it is gone, or the folder stays for inspection
	}
}

// The power of a disk can be restored although a process with its own mount
// namespace still held it at the unmount.
func TestThePowerOfADiskComesBack(t *testing.T) {
	disk := newPowerDisk(t, 64)
	ours := filepath.Join(disk.dir, "a-file")
	if err := os.WriteFile(ours, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	disk.settle()
	sandbox := exec.Command("unshare", "--mount", "sh", "-c", "echo has mounts of its own; cat >/dev/null")
	end, err := sandbox.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := sandbox.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Start(); err != nil {
		t.Skipf("no mounts of its own: %v", err)
	}
	if _, err := said.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	disk.cut()
	go func() {
		testkit.Within(long, func() bool { return !mountedAt(disk.dir) })
		time.Sleep(50 * time.Millisecond) // if it were mounted at once, it would be the file system that the sandbox still holds
		end.Close()
	}()
	disk.back()
	if err := os.WriteFile(ours, []byte("again"), 0o600); err != nil {
		t.Errorf("the power is back, and %v", err)
	}
	if err := sandbox.Wait(); err != nil {
		t.Error(err)
	}
}

func mountedAt(dir string) bool {
	table, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(table), " "+dir+" ")
}
