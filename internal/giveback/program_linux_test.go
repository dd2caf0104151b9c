package giveback

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Mappings that may differ from the file, or belong to another file, are left
// alone.
func TestOnlyUnchangedMappingsAreDropped(t *testing.T) {
	const smaps = `00400000-02000000 r-xp 00000000 fd:01 99 /usr/bin/signalbox
Size:              28672 kB
Rss:               20000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
02000000-03000000 r--p 01c00000 fd:01 99 /usr/bin/signalbox
Rss:               20000 kB
Anonymous:            16 kB
03000000-04000000 r--p 02c00000 fd:01 99 /usr/bin/signalbox
Anonymous:             0 kB
04000000-05000000 rw-p 03c00000 fd:01 99 /usr/bin/signalbox
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fd:01 7 /usr/lib/libc.so
Anonymous:             0 kB
7f0000002000-7f0000003000 r-xp 00000000 fd:01 9 /usr/bin/signalbox (deleted)
Anonymous:             0 kB
`
	got := unchanged(strings.NewReader(smaps), "/usr/bin/signalbox")
	if want := []mapping{{0x400000, 0x2000000}, {0x3000000, 0x4000000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// The program keeps running after its pages were released, and uses fewer.
func TestTheProgramRunsOnWithoutItsPages(t *testing.T) {
	text := strings.Repeat("all pages of this program ", 1000)
	before := residentFile(t)
	releaseProgram()
	after := residentFile(t)
	if strings.Count(text, "pages") != 1000 {
		t.Error("the program no longer counts correctly")
	}
	if after >= before {
		t.Errorf("%d kB of files are resident, %d before", after, before)
	}
}

// residentFile is how much of the mapped files is resident, in kB.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, found := bytes.Cut(status, []byte("RssFile:"))
	if fields := bytes.Fields(rest); found && len(fields) > 0 {
		n, err := strconv.Atoi(string(fields[0]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Skip("the kernel does not say")
	return 0
}
