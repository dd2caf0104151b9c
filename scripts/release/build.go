package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// target is a system for which there is an archive.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

var targets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

func parseTarget(s string) (target, error) {
	for _, t := range targets {
		if t.String() == s {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("no target %q: want one of %v", s, targets)
}

// place is where a release is built, with additional environment variables.
type place struct {
	source, out string
	env         []string
}

const (
	sumsFile    = "SHA256SUMS"
	noticesFile = "THIRD_PARTY_LICENSES.txt"
	unitFile    = "contrib/signalbox.service"
)

// environment returns the environment of a build. It overrides all variables of the
// caller that could change the result.
func environment(t target, more []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "CGO_") || strings.HasPrefix(e, "GOFLAGS=") || strings.HasPrefix(e, "GOEXPERIMENT=")
	})
	env = append(env, more...)
	return append(env, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOTOOLCHAIN=local", "GOENV=off",
		"GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
}

// goods are the inputs of the packages of a release.
type goods struct {
	release
	place
	says  host
	built []built
}

// built is the program of one target, with its notices.
type built struct {
	target
	program, notices []byte
}

// forms write the packages; each returns the files that it wrote.
var forms = []func(goods) ([]string, error){npm, deb, image, formula}

// build writes the archives of all targets, their SBOMs, the packages and
// SHA256SUMS.
func build(ctx context.Context, o options, r release, p place) error {
	if err := export(ctx, r, p.source); err != nil {
		return err
	}
	done := building("for this machine, which prints completions and manual pages")
	says, err := hosted(ctx, r, p)
	done()
	if err != nil {
		return err
	}
	g := goods{release: r, place: p, says: says}
	var files []string
	for _, t := range o.targets {
		done := building(t.String())
		made, paths, err := one(ctx, r, p, t, says)
		done()
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		g.built, files = append(g.built, made), append(files, paths...)
	}
	for _, form := range forms {
		paths, err := form(g)
		if err != nil {
			return err
		}
		files = append(files, paths...)
	}
	return writeSums(files, filepath.Join(p.out, sumsFile))
}

// building prints what is being built and, at the end, how long it took: without a
// cache it takes minutes.
func building(what string) (done func()) {
	fmt.Fprintln(os.Stderr, "building", what)
	began := time.Now()
	return func() { fmt.Fprintln(os.Stderr, "  took", time.Since(began).Round(time.Second)) }
}

func writeSums(files []string, to string) error {
	var sums []string
	for _, path := range files {
		sum, err := sha(path)
		if err != nil {
			return err
		}
		sums = append(sums, sum+"  "+filepath.Base(path)+"\n")
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return publish(to, []byte(strings.Join(sums, "")))
}

// file returns a file of the source, under its name in a package.
func (p place) file(from, name string) (entry, error) {
	data, err := os.ReadFile(filepath.Join(p.source, filepath.FromSlash(from)))
	return entry{name: name, data: data}, err
}

// compile builds the program for a target.
func compile(ctx context.Context, r release, p place, t target, to string) error {
	flags := "-s -w -buildid= -X main.version=" + r.version
	_, err := output(ctx, p.source, environment(t, p.env), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", flags, "-o", to, "./cmd/"+product)
	return err
}

// host has the files that the program itself generates, the same for all targets:
// shell completions and manual pages.
type host struct{ shells, manuals []entry }

func hosted(ctx context.Context, r release, p place) (h host, err error) {
	work, err := os.MkdirTemp("", "release-host-*")
	if err != nil {
		return h, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	bin := filepath.Join(work, product)
	if err := compile(ctx, r, p, target{runtime.GOOS, runtime.GOARCH}, bin); err != nil {
		return h, err
	}
	env := []string{"HOME=" + work, "PATH=" + work}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		text, err := output(ctx, work, env, bin, "completion", shell)
		if err != nil {
			return h, err
		}
		h.shells = append(h.shells, entry{name: "completion/" + product + "." + shell, data: []byte(text + "\n")})
	}
	pages := filepath.Join(work, "man")
	if err := os.Mkdir(pages, 0o700); err != nil {
		return h, err
	}
	if _, err := output(ctx, work, env, bin, "man", pages, "--date", r.at.UTC().Format(time.DateOnly)); err != nil {
		return h, err
	}
	names, err := os.ReadDir(pages)
	for _, name := range names {
		text, unread := os.ReadFile(filepath.Join(pages, name.Name()))
		err = errors.Join(err, unread)
		h.manuals = append(h.manuals, entry{name: "man/" + name.Name(), data: text})
	}
	if err == nil && len(names) == 0 {
		err = errors.New("the program wrote no manual pages")
	}
	return h, err
}

// archiveOf returns the name of the archive of a target and of its folder.
func archiveOf(r release, t target) string {
	return strings.Join([]string{product, r.version, t.os, t.arch}, "_")
}

// one builds the program of a target, its archive and its SBOM.
func one(ctx context.Context, r release, p place, t target, says host) (made built, paths []string, err error) {
	made.target = t
	name := archiveOf(r, t)
	bin := filepath.Join(p.source, "bin", name)
	if err := compile(ctx, r, p, t, bin); err != nil {
		return made, nil, err
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return made, nil, err
	}
	parts, err := partsOf(ctx, p, info)
	if err != nil {
		return made, nil, err
	}
	made.notices = notices(parts)
	if made.program, err = os.ReadFile(bin); err != nil {
		return made, nil, err
	}
	entries := append([]entry{{name: product, data: made.program, program: true}, {name: noticesFile, data: made.notices}}, append(says.shells, says.manuals...)...)
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "docs/cli.md", "docs/operations.md", unitFile} {
		if t.os != "linux" && file == unitFile {
			continue
		}
		e, err := p.file(file, file)
		if err != nil {
			return made, nil, err
		}
		entries = append(entries, e)
	}
	archive := filepath.Join(p.out, name+".tar.gz")
	if err := pack(archive, name, entries, r.at); err != nil {
		return made, nil, err
	}
	list, err := bill(r, t, info.GoVersion, hashOf(made.program), parts)
	if err != nil {
		return made, nil, err
	}
	bom := filepath.Join(p.out, name+".cdx.json")
	return made, []string{archive, bom}, publish(bom, list)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sha(path string) (string, error) {
	data, err := os.ReadFile(path)
	return hashOf(data), err
}
