package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// maxName is the maximum length of a tool's name at the stricter vendor.
const maxName = 64

var vendorForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func vendorName(name string) bool { return len(name) <= maxName && vendorForm.MatchString(name) }

// Names maps tools' names to names that vendors accept (1 to 64 letters,
// digits, hyphens and underscores), and back. Valid names stay unchanged.
// Other names get a part of their hash, so that the mapping is the same in
// each turn and unique, whatever other tools there are.
type Names struct {
	to, from map[string]string
}

// NewNames maps the names of these tools.
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

// free returns a name that no tool has: a tool could have the name that
// another's is mapped to.
func (n *Names) free(name string) string {
	for digits := 8; ; digits += 8 {
		v := fitted(name, maxName, digits)
		if _, taken := n.from[v]; !taken || digits >= 48 {
			return v
		}
	}
}

// Vendor is the tool's name at the vendor. Tools of earlier turns that no
// longer exist are mapped too.
func (n *Names) Vendor(name string) string {
	if v, ok := n.to[name]; ok {
		return v
	}
	if vendorName(name) {
		return name
	}
	return fitted(name, maxName, 8)
}

// Tool returns the tool for a vendor's name. An unknown name is returned
// unchanged.
func (n *Names) Tool(vendor string) string {
	if name, ok := n.from[vendor]; ok {
		return name
	}
	return vendor
}

// ID converts the ID of a call to one that both vendors accept (1 to 40 of
// the same characters as names): the conversation may have begun at another
// vendor.
func ID(id string) string {
	if len(id) <= 40 && vendorName(id) {
		return id
	}
	return fitted(id, 40, 16)
}

// fitted replaces invalid characters and appends a part of the name's hash.
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
