package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// checkTwice builds in two folders with names of different lengths, the second time
// with an empty cache, another HOME, time zone and umask, and compares each file byte
// by byte.
func checkTwice(ctx context.Context, o options, r release) (err error) {
	work, err := os.MkdirTemp("", "release-check-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	one := place{source: filepath.Join(work, "a", "source"), out: filepath.Join(work, "out-a")}
	two := place{source: filepath.Join(work, "some", "longer way", "to the", "source"), out: filepath.Join(work, "out-b")}
	home := filepath.Join(work, "home")
	modules, err := output(ctx, ".", os.Environ(), "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	two.env = []string{"HOME=" + home, "GOCACHE=" + filepath.Join(home, "cache"), "GOMODCACHE=" + modules, "TZ=Asia/Kathmandu", "LANG=C", "GOFLAGS=-v"}
	for _, dir := range []string{one.out, two.out, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a temporary folder
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "first time, with the cache of this machine")
	if err := build(ctx, o, r, one); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "second time, without a cache")
	old := syscall.Umask(0o077)
	err = build(ctx, o, r, two)
	syscall.Umask(old)
	if err != nil {
		return err
	}
	n, err := same(one.out, two.out)
	if err != nil {
		return err
	}
	fmt.Printf("%s, commit %s: %d files, the same bytes both times\n", r.version, r.commit[:12], n)
	return nil
}

// same compares the files of two folders.
func same(a, b string) (int, error) {
	names := func(dir string) (out []string, err error) {
		list, err := os.ReadDir(dir)
		for _, f := range list {
			out = append(out, f.Name())
		}
		return out, err
	}
	in, err1 := names(a)
	also, err2 := names(b)
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	if !slices.Equal(in, also) || len(in) == 0 {
		return 0, fmt.Errorf("the builds made different files: %v and %v", in, also)
	}
	var differ []string
	for _, name := range in {
		x, err1 := os.ReadFile(filepath.Join(a, name))
		y, err2 := os.ReadFile(filepath.Join(b, name))
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		if !bytes.Equal(x, y) {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return 0, fmt.Errorf("the builds differ in %v", differ)
	}
	return len(in), nil
}
