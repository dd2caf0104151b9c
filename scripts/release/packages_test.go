package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sampled returns the goods of a release of this folder's source, with the given text
// as the programs, and their archives.
func sampled(t *testing.T, program string) goods {
	t.Helper()
	g := goods{
		release: release{version: "1.2.0", commit: strings.Repeat("c", 40), at: noon},
		place:   place{source: filepath.Join("..", ".."), out: t.TempDir()},
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		g.says.shells = append(g.says.shells, entry{name: "completion/signalbox." + shell, data: []byte("# " + shell + "\n")})
	}
	for _, name := range []string{"signalbox.1", "signalbox-submit.1"} {
		g.says.manuals = append(g.says.manuals, entry{name: "man/" + name, data: []byte(".TH " + name + "\n")})
	}
	for _, on := range targets {
		g.built = append(g.built, built{target: on, program: []byte(program), notices: []byte("what is in it\n")})
		archive := filepath.Join(g.out, archiveOf(g.release, on)+".tar.gz")
		if err := pack(archive, "signalbox", []entry{{name: "signalbox", data: []byte(program + on.String())}}, noon); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// packed writes one form of package.
func packed(t *testing.T, g goods, form func(goods) ([]string, error)) []string {
	t.Helper()
	paths, err := form(g)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// lacking skips a test if programs are missing, or fails it if the machine must have
// all of them.
func lacking(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: run make setup", name)
		}
		t.Skipf("%s is not installed: run make setup", name)
	}
}

func ran(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Each form returns all files that it writes, so SHA256SUMS lists them. The next
// release in the same folder removes all of them.
func TestPackagesAreNamedAndTheSameBytes(t *testing.T) {
	one, two := sampled(t, "program"), sampled(t, "program")
	var named []string
	for _, form := range forms {
		named = append(named, packed(t, one, form)...)
		packed(t, two, form)
	}
	if _, err := same(one.out, two.out); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(one.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if path := filepath.Join(one.out, f.Name()); !strings.HasSuffix(path, ".tar.gz") && !slices.Contains(named, path) {
			t.Errorf("%s is in no sum", f.Name())
		}
	}
	if want := 5 + 2 + 1 + 1; len(named) != want {
		t.Errorf("%d files, want %d: %v", len(named), want, named)
	}
	if err := emptied(one.out); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(one.out); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestVersionsOfPackages(t *testing.T) {
	for _, c := range []struct{ version, npm, deb string }{
		{"1.2.0", "1.2.0", "1.2.0"},
		{"1.2.0-rc.1", "1.2.0-rc.1", "1.2.0~rc.1"},
		{"1.2.0-5-g0123456789ab", "1.2.0-5-g0123456789ab", "1.2.0+5.g0123456789ab"},
		{"1.2.0-rc.1-5-g0123456789ab", "1.2.0-rc.1-5-g0123456789ab", "1.2.0~rc.1+5.g0123456789ab"},
		{"1.2.0+more", "1.2.0", "1.2.0+more"},
		{"f8c59791234a", "0.0.0-gf8c59791234a", "0.0.0~gf8c59791234a"},
	} {
		if npm, deb := npmVersion(c.version), debVersion(c.version); npm != c.npm || deb != c.deb {
			t.Errorf("%s: %s and %s, want %s and %s", c.version, npm, deb, c.npm, c.deb)
		}
	}
	if _, err := exec.LookPath("dpkg"); err == nil {
		ran(t, "dpkg", "--compare-versions", debVersion("1.2.0-rc.1"), "lt", debVersion("1.2.0"))
		ran(t, "dpkg", "--compare-versions", debVersion("1.2.0-5-gabc"), "gt", debVersion("1.2.0"))
	}
}

// The formula contains each archive with its hash in SHA256SUMS.
func TestTheFormulaHasTheSumsOfTheArchives(t *testing.T) {
	g := sampled(t, "program")
	path := packed(t, g, formula)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archives, _ := filepath.Glob(filepath.Join(g.out, "*.tar.gz"))
	sums := filepath.Join(t.TempDir(), sumsFile)
	if err := writeSums(archives, sums); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(sums)
	var got []string
	for _, m := range regexp.MustCompile(`on_(\w+) do\n\s+url "https://\S+/v1\.2\.0/(\S+)"\n\s+sha256 "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		if arch := map[string]string{"intel": "amd64", "arm": "arm64"}[m[1]]; !strings.HasSuffix(m[2], arch+".tar.gz") {
			t.Errorf("on_%s gets %s", m[1], m[2])
		}
		got = append(got, fmt.Sprintf("%s  %s\n", m[3], m[2]))
	}
	slices.SortFunc(got, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	if strings.Join(got, "") != string(want) || len(got) != len(targets) {
		t.Errorf("the formula has\n%swant\n%s", strings.Join(got, ""), want)
	}
	if !strings.Contains(string(text), "man1.install Dir[\"man/*.1\"]\n") {
		t.Error("the formula installs no manual pages")
	}
	if strings.Count(string(text), "\n  on_") != 2 {
		t.Errorf("%s", text)
	}
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Skip("ruby is not installed: the formula was not parsed")
	}
	ran(t, "ruby", "-c", path)
}
