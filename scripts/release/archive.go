package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"os"
	"slices"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	data    []byte
	program bool
}

// pack writes entries below folder, sorted, all of nobody's and of one time:
// the same entries are the same bytes.
func pack(path, folder string, entries []entry, at time.Time) error {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	to := tar.NewWriter(zip)
	for _, e := range entries {
		mode := int64(0o644)
		if e.program {
			mode = 0o755
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + e.name, Size: int64(len(e.data)), Mode: mode, ModTime: at, Format: tar.FormatUSTAR}
		if err := to.WriteHeader(h); err != nil {
			return err
		}
		if _, err := to.Write(e.data); err != nil {
			return err
		}
	}
	if err := errors.Join(to.Close(), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // for everyone
}
