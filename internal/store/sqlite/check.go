package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/signalbox-ai/signalbox"
)

// The beginning of every SQLite file (sqlite.org/fileformat2).
const (
	headerSize   = 100
	atPageSize   = 16
	atChanges    = 24
	atPages      = 28
	atVersion    = 60
	atAppID      = 68
	atPagesValid = 92
)

var magic = []byte("SQLite format 3\x00")

// check checks the files with plain reads, before SQLite, which would change them. It reports
// whether there is a database.
func check(path string, newest int) (exists bool, err error) {
	log, err := head(path + "-wal")
	if err != nil {
		return false, unusable(path, err)
	}
	file, err := head(path)
	if err != nil {
		return false, unusable(path, err)
	}
	if file.size == 0 {
		if log.size > 0 {
			return false, corrupt(path, "the file is missing, but its write-ahead log "+path+"-wal is there")
		}
		return false, nil
	}
	if err := checkHeader(path, file, newest); err != nil {
		return false, err
	}
	if log.size == 0 && file.pages() > file.size/file.pageSize() {
		return false, corrupt(path, fmt.Sprintf("it was cut off: %d bytes are missing", file.pages()*file.pageSize()-file.size))
	}
	return true, checkLog(path, log)
}

// fileHeader is the size of a file and its first bytes.
type fileHeader struct {
	size int64
	b    []byte
}

func (h *fileHeader) number(at int) int64 { return int64(binary.BigEndian.Uint32(h.b[at:])) }

func (h *fileHeader) pageSize() int64 {
	if n := int64(binary.BigEndian.Uint16(h.b[atPageSize:])); n != 1 {
		return n
	}
	return 65536
}

// pages is how many pages the file should have according to its header.
func (h *fileHeader) pages() int64 {
	if h.number(atChanges) != h.number(atPagesValid) {
		return 0
	}
	return h.number(atPages)
}

// head reads the beginning of a file; a missing file has size 0.
func head(path string) (*fileHeader, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &fileHeader{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h := &fileHeader{size: info.Size(), b: make([]byte, headerSize)}
	n, err := io.ReadFull(f, h.b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h.b = h.b[:n]
	return h, nil
}

func checkHeader(path string, h *fileHeader, newest int) error {
	if len(h.b) < headerSize || !bytes.HasPrefix(h.b, magic) {
		return foreign(path, "it is not an SQLite database")
	}
	if size := h.pageSize(); size < 512 || size&(size-1) != 0 {
		return corrupt(path, "its header is damaged")
	}
	if id := h.number(atAppID); id != applicationID {
		return foreign(path, fmt.Sprintf("it is a database of another program (application id %#x)", id))
	}
	return checkVersion(path, h.number(atVersion), newest)
}

func checkVersion(path string, version int64, newest int) error {
	switch {
	case version > int64(newest):
		return signalbox.Errorf(signalbox.CodeConflict,
			"%s was written by a newer version of signalbox (schema %d, this one knows %d): start the newer version, or choose another folder with --data; the file was not touched",
			path, version, newest)
	case version < 1:
		return corrupt(path, "it has no schema version")
	}
	return nil
}

// checkLog refuses a write-ahead log that SQLite would take for empty and overwrite. A log that
// begins with zeros was never synced: nothing in it was acknowledged.
func checkLog(path string, log *fileHeader) error {
	const size, first, second = 32, 0x377f0682, 0x377f0683
	if len(log.b) < size || len(bytes.Trim(log.b[:size], "\x00")) == 0 {
		return nil
	}
	if m := log.number(0); m != first && m != second {
		return corrupt(path+"-wal", "the write-ahead log is damaged")
	}
	if !sumFits(log.b[:size]) {
		return corrupt(path+"-wal", "the header of the write-ahead log is damaged")
	}
	return nil
}

// sumFits checks the checksum over the first 24 bytes of a log.
func sumFits(b []byte) bool {
	var order binary.ByteOrder = binary.LittleEndian
	if b[3]&1 == 1 {
		order = binary.BigEndian
	}
	var s, t uint32
	for at := 0; at < 24; at += 8 {
		s += order.Uint32(b[at:]) + t
		t += order.Uint32(b[at+4:]) + s
	}
	return s == binary.BigEndian.Uint32(b[24:]) && t == binary.BigEndian.Uint32(b[28:])
}

const untouched = "; the file was not touched"

func foreign(path, what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt,
		"%s is no database of signalbox: %s. Choose another folder with --data, or move the file away"+untouched, path, what)
}

func corrupt(path, what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt,
		"%s is damaged: %s. Restore it from a backup, or move it and its -wal file away to start with an empty one"+untouched, path, what)
}
