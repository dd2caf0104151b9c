package sqlite

import (
	"encoding/binary"
	"math/bits"
)

// KeyBytes is the length of the checksum key.
const KeyBytes = 16

// sumBytes is the length of a checksum, which precedes its data.
const sumBytes = 8

// key computes row checksums: SipHash-2-4, which is made for short values. Without the key, a changed row
// cannot get a valid checksum.
type key struct{ k0, k1 uint64 }

func keyOf(b []byte) key {
	return key{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// The kinds of checksums. They go into the checksum, so that a value of one kind is not accepted as another.
const (
	sumTask    = 1
	sumRequest = 2
	sumResult  = 3
	sumCheck   = 4 // of the key itself
)

// sum is the checksum of a row's bytes and its number.
func (k key) sum(kind, seq int64, b []byte) uint64 {
	h := sipHash{
		k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d,
		k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573,
	}
	h.word(uint64(kind)) //nolint:gosec // the same bits
	h.word(uint64(seq))  //nolint:gosec // the same bits
	last := uint64(len(b)+16) << 56
	for ; len(b) >= 8; b = b[8:] {
		h.word(binary.LittleEndian.Uint64(b))
	}
	for n, c := range b {
		last |= uint64(c) << (8 * n)
	}
	h.word(last)
	h.v2 ^= 0xff
	for range 4 {
		h.round()
	}
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3
}

type sipHash struct{ v0, v1, v2, v3 uint64 }

func (h *sipHash) word(m uint64) {
	h.v3 ^= m
	h.round()
	h.round()
	h.v0 ^= m
}

func (h *sipHash) round() {
	h.v0 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 13) ^ h.v0
	h.v0 = bits.RotateLeft64(h.v0, 32)
	h.v2 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 16) ^ h.v2
	h.v0 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 21) ^ h.v0
	h.v2 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 17) ^ h.v2
	h.v2 = bits.RotateLeft64(h.v2, 32)
}

// summed appends the checksum of what f appends, followed by that.
func (k key) summed(b []byte, kind, seq int64, f func(b []byte) []byte) []byte {
	at := len(b)
	b = f(append(b, make([]byte, sumBytes)...))
	binary.LittleEndian.PutUint64(b[at:], k.sum(kind, seq, b[at+sumBytes:]))
	return b
}

// appendText appends a length-prefixed text.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// checked returns what summed was given; ok reports whether the checksum matches.
func (k key) checked(b []byte, kind, seq int64) (rest []byte, ok bool) {
	if len(b) < sumBytes {
		return nil, false
	}
	rest = b[sumBytes:]
	return rest, binary.LittleEndian.Uint64(b) == k.sum(kind, seq, rest)
}
