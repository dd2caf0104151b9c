package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// place is where a release is built, and with which environment besides.
type place struct {
	source, out string
	env         []string
}

const sumsFile = "SHA256SUMS"

// environment of a build. What else stands in that of the caller and could
// change the bytes is set here.
func environment(t target, more []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "CGO_") || strings.HasPrefix(e, "GOFLAGS=") || strings.HasPrefix(e, "GOEXPERIMENT=")
	})
	env = append(env, more...)
	return append(env, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOTOOLCHAIN=local", "GOENV=off",
		"GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
}

// build makes the archives of all targets, their lists and SHA256SUMS.
func build(ctx context.Context, o options, r release, p place) error {
	if err := export(ctx, r, p.source); err != nil {
		return err
	}
	shells, err := completions(ctx, r, p)
	if err != nil {
		return err
	}
	var sums []string
	for _, t := range o.targets {
		fmt.Fprintln(os.Stderr, "building", t)
		files, err := one(ctx, r, p, t, shells)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		for _, path := range files {
			sum, err := sha(path)
			if err != nil {
				return err
			}
			sums = append(sums, sum+"  "+filepath.Base(path)+"\n")
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(p.out, sumsFile), []byte(strings.Join(sums, "")), 0o644) //nolint:gosec // for everyone
}

// compile builds the program for a target.
func compile(ctx context.Context, r release, p place, t target, to string) error {
	flags := "-s -w -buildid= -X main.version=" + r.version
	_, err := output(ctx, p.source, environment(t, p.env), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", flags, "-o", to, "./cmd/"+product)
	return err
}

// completions are those of the shells, as the program itself prints them here.
func completions(ctx context.Context, r release, p place) ([]entry, error) {
	work, err := os.MkdirTemp("", "release-host-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	bin := filepath.Join(work, product)
	if err := compile(ctx, r, p, target{runtime.GOOS, runtime.GOARCH}, bin); err != nil {
		return nil, err
	}
	var out []entry
	for _, shell := range []string{"bash", "fish", "zsh"} {
		text, err := output(ctx, work, []string{"HOME=" + work, "PATH=" + work}, bin, "completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: "completion/" + product + "." + shell, data: []byte(text + "\n")})
	}
	return out, nil
}

// one builds the archive of a target and its list.
func one(ctx context.Context, r release, p place, t target, shells []entry) (paths []string, err error) {
	name := strings.Join([]string{product, r.version, t.os, t.arch}, "_")
	bin := filepath.Join(p.source, "bin", name)
	if err := compile(ctx, r, p, t, bin); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(ctx, p, info)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	entries := append([]entry{{name: product, data: program, program: true}, {name: "THIRD_PARTY_LICENSES.txt", data: notices(parts)}}, shells...)
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "docs/cli.md", "docs/operations.md", "contrib/signalbox.service"} {
		if t.os != "linux" && strings.HasPrefix(file, "contrib/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(p.source, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: file, data: data})
	}
	archive := filepath.Join(p.out, name+".tar.gz")
	if err := pack(archive, name, entries, r.at); err != nil {
		return nil, err
	}
	list, err := bill(r, t, info.GoVersion, hashOf(program), parts)
	if err != nil {
		return nil, err
	}
	bom := filepath.Join(p.out, name+".cdx.json")
	return []string{archive, bom}, os.WriteFile(bom, list, 0o644) //nolint:gosec // for everyone
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sha(path string) (string, error) {
	data, err := os.ReadFile(path)
	return hashOf(data), err
}
