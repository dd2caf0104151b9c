package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or a folder if its name ends in a slash.
type entry struct {
	name    string
	data    []byte
	program bool
	owner   int // owner of a folder that only the owner may read; 0: everyone may
}

func (e entry) header(at time.Time) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: 0o644, Uid: e.owner, Gid: e.owner, ModTime: at, Format: tar.FormatUSTAR}
	switch {
	case strings.HasSuffix(e.name, "/") && e.owner != 0:
		h.Typeflag, h.Mode = tar.TypeDir, 0o700
	case strings.HasSuffix(e.name, "/"):
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	case e.program:
		h.Mode = 0o755
	}
	return h
}

// tarball returns a reproducible tarball: the entries are sorted and have the same
// time.
func tarball(entries []entry, at time.Time) ([]byte, error) {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for _, e := range entries {
		if err := to.WriteHeader(e.header(at)); err != nil {
			return nil, err
		}
		if _, err := to.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := to.Close()
	return out.Bytes(), err
}

// compression is lowered by tests that pack the real program.
var compression = gzip.BestCompression

func zipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, compression)
	if err != nil {
		return nil, err
	}
	_, err = zip.Write(data)
	err = errors.Join(err, zip.Close())
	return out.Bytes(), err
}

// below moves the entries into a folder.
func below(folder string, entries []entry) []entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].name = folder + "/" + out[i].name
	}
	return out
}

// withFolders adds the parent folders of the entries.
func withFolders(entries []entry) []entry {
	out, seen := slices.Clone(entries), map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			out = append(out, entry{name: dir + "/"})
		}
	}
	return out
}

// pack writes a .tar.gz of the entries, below folder.
func pack(path, folder string, entries []entry, at time.Time) error {
	plain, err := tarball(below(folder, entries), at)
	if err != nil {
		return err
	}
	data, err := zipped(plain)
	if err != nil {
		return err
	}
	return publish(path, data)
}

func publish(path string, data []byte) error {
	return os.WriteFile(path, data, 0o644) //nolint:gosec // for everyone
}
