package giveback

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram releases the mapped pages of the program's own file: a start
// touches most of them, an idle process few. They stay in the page cache and are
// mapped again on use. Errors are ignored.
func releaseProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range unchanged(maps, program) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED)
	}
}

// mapping is an address range.
type mapping struct{ begin, end uintptr }

// unchanged lists the mappings of a file that are not writable and have no page
// that differs from the file, so that nothing is lost if they are released.
func unchanged(smaps io.Reader, file string) (list []mapping) {
	var at *mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"):
			at = nil
			if begin, end, ok := strings.Cut(fields[0], "-"); ok && len(fields) == 6 && fields[5] == file && !strings.Contains(fields[1], "w") {
				from, err1 := strconv.ParseUint(begin, 16, strconv.IntSize)
				to, err2 := strconv.ParseUint(end, 16, strconv.IntSize)
				if err1 == nil && err2 == nil {
					at = &mapping{uintptr(from), uintptr(to)}
				}
			}
		case at != nil && len(fields) >= 2 && fields[0] == "Anonymous:":
			if fields[1] == "0" {
				list = append(list, *at)
			}
			at = nil
		}
	}
	return list
}
