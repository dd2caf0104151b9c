package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

// options are the command line options.
type options struct {
	repo, rev, out string
	targets        []target
	check          bool
}

func run(ctx context.Context, args []string) error {
	o := options{targets: targets}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.repo, "repo", ".", "the repository")
	flags.StringVar(&o.rev, "rev", "HEAD", "the commit or tag that is built")
	flags.StringVar(&o.out, "out", "dist", "the folder for the archives")
	flags.BoolVar(&o.check, "check", false, "build twice, in different folders and environments, and compare")
	only := flags.String("only", "", "one target, such as linux/amd64 (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only != "" {
		t, err := parseTarget(*only)
		if err != nil {
			return err
		}
		o.targets = []target{t}
	}
	r, err := describe(ctx, o.repo, o.rev)
	if err != nil {
		return err
	}
	if o.check {
		return checkTwice(ctx, o, r)
	}
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	if err := emptied(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	if err := build(ctx, o, r, place{source: filepath.Join(work, "source"), out: out}); err != nil {
		return err
	}
	fmt.Printf("%s, commit %s: %s\n", r.version, r.commit[:12], out)
	return nil
}

// emptied creates the folder of a release and removes files of earlier releases.
func emptied(dir string) error {
	old := []string{filepath.Join(dir, sumsFile), filepath.Join(dir, product+".rb")}
	for _, names := range []string{product + "_*", product + "-*.tgz"} {
		found, err := filepath.Glob(filepath.Join(dir, names))
		if err != nil {
			return err
		}
		old = append(old, found...)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755) //nolint:gosec // readable by everyone
}

// output runs a program and returns what it printed, trimmed.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(wrong.String()))
	}
	return strings.TrimSpace(said.String()), nil
}
