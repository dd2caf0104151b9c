package sqlite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
)

// refused wants Open to refuse a path with these words, and to leave every file in its folder unchanged.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	before := files(t, filepath.Dir(path))
	s, err := Open(context.Background(), Options{Path: path, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if code := signalbox.CodeOf(err); code == signalbox.CodeInternal {
		t.Errorf("%v has no code", err)
	}
	after := files(t, filepath.Dir(path))
	delete(after, path+".lock")
	delete(before, path+".lock")
	for name, content := range before {
		if !bytes.Equal(after[name], content) {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there were %d files, now %d", len(before), len(after))
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return all
	}
	for _, e := range entries {
		if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
			all[filepath.Join(dir, e.Name())] = b
		}
	}
	return all
}

// made creates a database with some data and returns its path.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.db")
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		mustSubmit(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRefusesNonDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	write(t, path, bytes.Repeat([]byte("garbage "), 2000))
	refused(t, path, "no database of signalbox", "not touched")
	write(t, path, []byte("short"))
	refused(t, path, "no database of signalbox")
}

func TestRefusesDatabaseOfOtherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	c, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"PRAGMA application_id = 42", "CREATE TABLE t(a)"} {
		if _, err := c.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	c.close()
	refused(t, path, "another program", "0x2a", "--data")
}

func TestRefusesTruncatedFile(t *testing.T) {
	path := made(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, b[:len(b)-5000])
	refused(t, path, "cut off", "backup")
	write(t, path, b[:50])
	refused(t, path, "no database of signalbox")
}

func TestRefusesDamagedHeader(t *testing.T) {
	path := made(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[atPageSize], b[atPageSize+1] = 0x03, 0x33
	write(t, path, b)
	refused(t, path, "damaged")
}

func TestRefusesDamagedSchema(t *testing.T) {
	path := made(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[headerSize:4096], bytes.Repeat([]byte{0xff}, 4096))
	write(t, path, b)
	_, err = Open(context.Background(), Options{Path: path})
	if signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt {
		t.Fatalf("got %v, want %s", err, signalbox.CodeStoreCorrupt)
	}
}

func TestRefusesLogThatSQLiteWouldDiscard(t *testing.T) {
	path := made(t)
	write(t, path+"-wal", bytes.Repeat([]byte("garbage "), 2000))
	refused(t, path, "-wal is damaged")
	good := []byte{0x37, 0x7f, 0x06, 0x82}
	write(t, path+"-wal", append(good, make([]byte, 100)...))
	refused(t, path, "write-ahead log is damaged")
}

func TestRefusesLogWithoutDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	write(t, path+"-wal", make([]byte, 5000))
	refused(t, path, "the file is missing")
}

func TestAcceptsUnsyncedLog(t *testing.T) {
	path := made(t)
	write(t, path+"-wal", make([]byte, 5000))
	s := openTest(t, Options{Path: path})
	if got := waiting(t, s); got != 100 {
		t.Fatalf("%d tasks wait, want 100", got)
	}
}

func TestEmptyFileBecomesDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	write(t, path, nil)
	mustSubmit(t, openTest(t, Options{Path: path}))
}

func TestCrashDuringCreationIsNoObstacle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, leftover := range []string{".new", ".new-journal", ".new-wal"} {
		write(t, path+leftover, []byte("half made"))
	}
	mustSubmit(t, openTest(t, Options{Path: path}))
}

func TestRefusesInvalidPaths(t *testing.T) {
	dir := t.TempDir()
	refused(t, dir, "not a file")
	write(t, filepath.Join(dir, "file"), []byte("x"))
	refused(t, filepath.Join(dir, "file", "x.db"), "--data")
	_, err := Open(context.Background(), Options{})
	if signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Fatalf("the empty path: got %v", err)
	}
}

func TestFilesAreReadableByOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "x.db")
	s := openTest(t, Options{Path: path})
	mustSubmit(t, s)
	for _, name := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v (%v)", info.Mode(), err)
	}
}
