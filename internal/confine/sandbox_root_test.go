//go:build linux

package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// A sandbox also forbids what root can do without an open file: system-wide
// settings, devices, other networks.
func TestSandboxOfRootIsNotRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can do this")
	}
	const setting = "/proc/sys/kernel/core_pattern" // the program named in it runs as root, outside the sandbox
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if now, _ := os.ReadFile(setting); string(now) != string(before) {
			if err := os.WriteFile(setting, before, 0); err != nil {
				t.Error(err)
			}
		}
	})
	for _, kind := range kinds {
		for _, method := range []string{"groups", "rlimit"} {
			t.Run(kind+"/"+method, func(t *testing.T) {
				h := open(t, method)
				need(t, h, kind)
				write := t.TempDir()
				s := confine.Sandbox{On: true, Required: true, Kind: kind, Write: []string{write}}
				r := start(t, h, confine.Limits{OpenFiles: 100}, s, strings.ReplaceAll(`
cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo can set the system
mknod WRITE/disk b 7 0 && echo can make a device
mkdir WRITE/m; mount -t tmpfs none WRITE/m && echo can mount
test -r /proc/self/status && echo has proc
grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status
true`, "WRITE", write))
				exit, _ := r.finish()
				out := r.out.String()
				if exit.Code != 0 || strings.Contains(out, "can ") || !strings.Contains(out, "has proc") || strings.Count(out, "\t0000000000000000\n") != 4 {
					t.Errorf("%v: %s", exit, out)
				}
				if _, err := os.Lstat(filepath.Join(write, "disk")); err == nil {
					t.Error("it made a device")
				}
			})
		}
	}
}
