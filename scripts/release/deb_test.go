package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Debian's own tools can read the package.
func TestDebIsReadByDpkg(t *testing.T) {
	lacking(t, "dpkg-deb")
	for _, path := range packed(t, sampled(t, "#!/bin/sh\necho it runs\n"), deb) {
		info := ran(t, "dpkg-deb", "--info", path)
		for _, want := range []string{"Package: signalbox\n", "Version: 1.2.0\n", "Maintainer: ", "Installed-Size: ", "Description: "} {
			if !strings.Contains(info, want) {
				t.Errorf("%s: no %q in\n%s", path, want, info)
			}
		}
		if arch := strings.TrimSpace(ran(t, "dpkg-deb", "--field", path, "Architecture")); !strings.HasSuffix(path, "_"+arch+".deb") {
			t.Errorf("%s is for %s", path, arch)
		}
		if list := ran(t, "dpkg-deb", "--contents", path); !strings.Contains(list, " root/root ") && !strings.Contains(list, " 0/0 ") {
			t.Errorf("whose are they?\n%s", list)
		}
		fsys, err := exec.Command("dpkg-deb", "--fsys-tarfile", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]*tar.Header{}
		for in := tar.NewReader(bytes.NewReader(fsys)); ; {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(noon) {
				t.Errorf("%+v", h)
			}
			if parent := filepath.Dir(strings.TrimSuffix(h.Name, "/")); parent != "." && files["./"+parent+"/"] == nil {
				t.Errorf("%s comes before its folder", h.Name)
			}
			files[h.Name] = h
		}
		for name, mode := range map[string]int64{
			"./": 0o755, "./usr/bin/": 0o755, "./usr/bin/signalbox": 0o755, "./usr/lib/systemd/system/signalbox.service": 0o644,
			"./usr/share/bash-completion/completions/signalbox": 0o644, "./usr/share/zsh/vendor-completions/_signalbox": 0o644,
			"./usr/share/fish/vendor_completions.d/signalbox.fish": 0o644, "./usr/share/doc/signalbox/copyright": 0o644,
			"./usr/share/man/man1/signalbox.1.gz": 0o644, "./usr/share/man/man1/signalbox-submit.1.gz": 0o644,
			"./usr/share/doc/signalbox/CHANGELOG.md": 0o644, "./usr/share/doc/signalbox/THIRD_PARTY_LICENSES.txt": 0o644,
		} {
			if h := files[name]; h == nil || h.Mode != mode {
				t.Errorf("%s: %+v", name, h)
			}
		}
	}
}

// The package installs into a separate root, matches its checksums, and leaves
// nothing behind when it is removed.
func TestDebInstalls(t *testing.T) {
	lacking(t, "dpkg")
	if os.Getuid() != 0 {
		t.Skip("only root installs packages")
	}
	g := sampled(t, "#!/bin/sh\necho it runs\n")
	arch := strings.TrimSpace(ran(t, "dpkg", "--print-architecture"))
	path := filepath.Join(g.out, "signalbox_1.2.0_"+arch+".deb")
	packed(t, g, deb)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("there is no package for %s", arch)
	}
	root := t.TempDir()
	admin := filepath.Join(root, "var", "lib", "dpkg")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(admin, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(admin, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		t.Helper()
		return ran(t, "dpkg", append([]string{"--root=" + root, "--force-unsafe-io", "--log=" + filepath.Join(root, "log")}, args...)...)
	}
	dpkg("--install", path)
	if said := ran(t, filepath.Join(root, "usr/bin/signalbox")); said != "it runs\n" {
		t.Errorf("it says %q", said)
	}
	if said := dpkg("--status", "signalbox"); !strings.Contains(said, "Status: install ok installed") {
		t.Error(said)
	}
	if said := dpkg("--verify", "signalbox"); said != "" {
		t.Errorf("dpkg --verify: %s", said)
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/signalbox.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/signalbox director ") || strings.Contains(string(unit), "/usr/local") || strings.Contains(string(unit), "install -m") {
		t.Errorf("%v\n%s", err, unit)
	}
	packed, err := os.ReadFile(filepath.Join(root, "usr/share/man/man1/signalbox-submit.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil || !page.ModTime.IsZero() || page.Name != "" {
		t.Fatalf("%v, and it names %s and %q, which the next build would not", err, page.ModTime, page.Name)
	}
	if text, err := io.ReadAll(page); err != nil || string(text) != ".TH signalbox-submit.1\n" {
		t.Errorf("%v %q", err, text)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/bin/signalbox"), []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if said, _ := exec.Command("dpkg", "--root="+root, "--verify", "signalbox").CombinedOutput(); !strings.Contains(string(said), "/usr/bin/signalbox") {
		t.Errorf("a changed program is not found: %s", said)
	}
	dpkg("--purge", "signalbox")
	if _, err := os.Stat(filepath.Join(root, "usr")); !os.IsNotExist(err) {
		t.Errorf("something is left in usr on %s: %v", runtime.GOOS, err)
	}
}

// A unit that starts an unexpected program stops the release.
func TestUnexpectedUnitIsRefused(t *testing.T) {
	if _, err := installedUnit([]byte("[Service]\nExecStart=/opt/signalbox\n")); err == nil {
		t.Error("a unit without the program was taken")
	}
}
