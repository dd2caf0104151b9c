package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/soak"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// The order and the times of the entries do not change an archive.
func TestArchivesAreTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	entries := []entry{{name: "signalbox", data: []byte("program"), program: true}, {name: "LICENSE", data: []byte("terms")}, {name: "docs/cli.md", data: []byte("words")}}
	var made [2][]byte
	for i := range made {
		path := filepath.Join(dir, "a.tar.gz")
		if err := pack(path, "signalbox_1", entries, noon); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = data
		slices.Reverse(entries)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same entries in another order are other bytes")
	}
	zip, err := gzip.NewReader(bytes.NewReader(made[0]))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		wantMode := int64(0o644)
		if h.Name == "signalbox_1/signalbox" {
			wantMode = 0o755
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(noon) || h.Mode != wantMode {
			t.Errorf("%+v", h)
		}
	}
	if want := []string{"signalbox_1/LICENSE", "signalbox_1/docs/cli.md", "signalbox_1/signalbox"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	for want, body := range map[string]string{
		"MIT":          "Permission is hereby granted, free of charge,\n to any person obtaining a copy\n of this software and so on",
		"BSD-3-Clause": "// Redistributions in binary form must reproduce the above copyright notice …\n// nor its name may be used to endorse or promote products derived from",
		"BSD-2-Clause": "Redistributions in binary form must reproduce the above\ncopyright notice",
		"Apache-2.0":   "Apache License\n   Version 2.0, January 2004",
		"":             "All rights reserved.",
	} {
		if got := strings.Join(identify(body), " "); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// A part with an unknown licence stops the release.
func TestAPartWithoutALicenceIsRefused(t *testing.T) {
	dir := t.TempDir()
	p := part{name: "example.com/x"}
	if err := p.read(dir); err == nil || !strings.Contains(err.Error(), "no licence that is known") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "COPYING"), []byte("You may do nothing."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.read(dir); err == nil {
		t.Error("words that nobody knows were taken for a licence")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte("Apache License Version 2.0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.read(dir); err != nil || !slices.Equal(p.licences, []string{"Apache-2.0"}) {
		t.Errorf("%v %v", p.licences, err)
	}
}

// The SBOM lists each part once, with a licence identifier, and is the same for the
// same program.
func TestSBOM(t *testing.T) {
	parts := []part{{name: "example.com/a", version: "v1.0.0", url: "pkg:golang/example.com/a@v1.0.0", sum: strings.Repeat("ab", 32), licences: []string{"MIT"}}, {name: "std", version: "1.26.0", url: "pkg:golang/std@1.26.0", licences: []string{"BSD-3-Clause"}}}
	r := release{commit: strings.Repeat("c", 40), version: "1.2.0", at: noon}
	one, err := bill(r, targets[0], "go1.26.0", strings.Repeat("0", 64), parts)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := bill(r, targets[0], "go1.26.0", strings.Repeat("0", 64), parts); !bytes.Equal(one, again) {
		t.Error("two lists of the same program differ")
	}
	if other, _ := bill(r, targets[0], "go1.26.0", strings.Repeat("1", 64), parts); bytes.Contains(other, one[:120]) {
		t.Error("another program has the same serial number")
	}
	var got bom
	dec := json.NewDecoder(bytes.NewReader(one))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{got.Metadata.Component.Ref: true}
	for _, c := range got.Components {
		if refs[c.Ref] || len(c.Licences) == 0 || c.URL == "" {
			t.Errorf("%+v", c)
		}
		refs[c.Ref] = true
	}
	for _, d := range got.Dependencies {
		for _, ref := range append(d.On, d.Ref) {
			if !refs[ref] {
				t.Errorf("%s is no component", ref)
			}
		}
	}
	if got.Format != "CycloneDX" || got.Spec != "1.6" || !strings.HasPrefix(got.Serial, "urn:uuid:") || got.Metadata.Timestamp != "2026-01-02T12:00:00Z" {
		t.Errorf("%+v", got)
	}
}

// Only committed files are released, and the version is the tag.
func TestReleaseContainsOnlyTheCommit(t *testing.T) {
	repo, into := t.TempDir(), filepath.Join(t.TempDir(), "source")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1767355200 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo, name), []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	put("a.sh", "committed")
	git("add", "a.sh")
	git("commit", "-qm", "one")
	git("tag", "v1.2.0")
	put("a.sh", "changed")
	put("b", "new")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	r, err := describe(t.Context(), repo, "HEAD")
	if err != nil || r.version != "1.2.0" || !r.at.Equal(noon) {
		t.Fatalf("%+v %v", r, err)
	}
	if err := export(t.Context(), r, into); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(into)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if body, err := os.ReadFile(filepath.Join(into, "a.sh")); err != nil || string(body) != "committed" {
		t.Errorf("%q %v", body, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "12x")
	if _, err := describe(t.Context(), repo, "HEAD"); err == nil {
		t.Error("an odd SOURCE_DATE_EPOCH was taken")
	}
	if _, err := describe(t.Context(), repo, "--help"); err == nil {
		t.Error("a flag was taken for a revision")
	}
}

// The comparison finds differences.
func TestADifferenceIsFound(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte("same"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := same(a, b); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if err := os.WriteFile(filepath.Join(b, "x"), []byte("sane"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := same(a, b); err == nil || !strings.Contains(err.Error(), "[x]") {
		t.Errorf("one byte differs, and it says %v", err)
	}
	if err := os.Remove(filepath.Join(b, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := same(a, b); err == nil {
		t.Error("a file is missing, and nothing is said")
	}
	if _, err := same(b, b); err == nil {
		t.Error("two empty folders are no release")
	}
}

// TestAReleaseIsReproducible builds the program twice in different environments.
func TestAReleaseIsReproducible(t *testing.T) {
	if !soak.On() {
		t.Skip("builds the program twice without a cache; make soak, or make release-check")
	}
	o := options{repo: "../..", rev: "HEAD", targets: targets[2:3]}
	r, err := describe(t.Context(), o.repo, o.rev)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkTwice(t.Context(), o, r); err != nil {
		t.Fatal(err)
	}
}
