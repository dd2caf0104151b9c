package signalbox

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"time"
)

// IDPrefix stands before every task id.
const IDPrefix = "queue-"

// Crockford's alphabet keeps the order of the bytes and leaves out i, l, o
// and u, which people misread.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

var idForm = regexp.MustCompile(`^queue-[0-9a-hjkmnp-tv-z]{26}$`)

// NewID makes a task id: "queue-" and 26 characters that hold the time in ms
// (48 bits, so that ids sort by time) and 80 bits read from random.
func NewID(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	return IDPrefix + idEncoding.EncodeToString(b[:]), nil
}

// ValidID reports whether id has the form of a task id.
func ValidID(id string) bool { return idForm.MatchString(id) }
