//go:build unix

package conffile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// A pipe, such as --tools <(command), can be read only once. It used to be
// read a second time for its format, and was empty by then.
func TestAPipeIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	go func() { _ = os.WriteFile(path, []byte(`{"a": 1e3}`), 0o600) }()
	root, format, err := conffile.Read(path)
	if err != nil || format != conffile.JSON || len(root.Pairs) != 1 || root.Pairs[0].Value.Form != conffile.Number {
		t.Errorf("%+v %s %v", root, format, err)
	}
}
