package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// maxName is how long a tool's name may be at the stricter vendor.
const maxName = 64

var vendorForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func vendorName(name string) bool { return len(name) <= maxName && vendorForm.MatchString(name) }

// Names gives tools names that vendors take (1 to 64 letters, digits, hyphens
// and underscores) and finds them back. A name that is fit stays as it is. The
// others get a part of their hash, so that a name is the same in each turn and
// no two tools share one, whatever other tools there are.
type Names struct {
	to, from map[string]string
}

// NewNames names these tools.
func NewNames(tools []llm.Tool) *Names {
	n := &Names{to: map[string]string{}, from: map[string]string{}}
	var odd []string
	for _, t := range tools {
		if vendorName(t.Name) {
			n.to[t.Name], n.from[t.Name] = t.Name, t.Name
		} else {
			odd = append(odd, t.Name)
		}
	}
	slices.Sort(odd)
	for _, name := range slices.Compact(odd) {
		v := n.free(name)
		n.to[name], n.from[v] = v, name
	}
	return n
}

// free is a name that no tool has: one could be called what another's becomes.
func (n *Names) free(name string) string {
	for digits := 8; ; digits += 8 {
		v := fitted(name, maxName, digits)
		if _, taken := n.from[v]; !taken || digits >= 48 {
			return v
		}
	}
}

// Vendor is what the tool is called at the vendor. Tools of earlier turns
// that are no more have a name too.
func (n *Names) Vendor(name string) string {
	if v, ok := n.to[name]; ok {
		return v
	}
	if vendorName(name) {
		return name
	}
	return fitted(name, maxName, 8)
}

// Tool is the tool that the vendor's name stands for. A name that stands for
// none stays as it is.
func (n *Names) Tool(vendor string) string {
	if name, ok := n.from[vendor]; ok {
		return name
	}
	return vendor
}

// ID makes the id of a call fit for both vendors (1 to 40 of the same
// characters as names): a conversation may have begun at another one.
func ID(id string) string {
	if len(id) <= 40 && vendorName(id) {
		return id
	}
	return fitted(id, 40, 16)
}

// fitted replaces what is not fit and ends in a part of the hash of all of it.
func fitted(s string, most, digits int) string {
	sum := sha256.Sum256([]byte(s))
	tail := "_" + hex.EncodeToString(sum[:])[:digits]
	b := make([]byte, 0, most)
	for i := 0; i < len(s) && len(b) < most-len(tail); i++ {
		c := s[i]
		if !vendorForm.Match([]byte{c}) {
			c = '_'
		}
		b = append(b, c)
	}
	return string(b) + tail
}
