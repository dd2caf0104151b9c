package main

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// syncs returns how many times a second one block can be written and synced,
// always at the same place or always behind the last one.
func syncs(dir string, append bool, d time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fdatasync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 4096)
	if _, err := f.Write(block); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	n, at := 0, int64(0)
	start := time.Now()
	for time.Since(start) < d {
		if append {
			at += int64(len(block))
		}
		block[0]++
		if _, err := f.WriteAt(block, at); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
