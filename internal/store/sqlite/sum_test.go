package sqlite

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Test vectors published by the authors of SipHash: the key 00 to 0f, over messages of bytes 00 up to one
// less than their length. Here the first 16 bytes are two numbers.
func TestSumIsSipHash24(t *testing.T) {
	k := make([]byte, KeyBytes)
	for n := range k {
		k[n] = byte(n)
	}
	text := make([]byte, 64)
	for n := range text {
		text[n] = byte(n)
	}
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(text[at:])) }
	for length, want := range map[int][]byte{
		16: {0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f},
		17: {0x94, 0x47, 0xbe, 0x2c, 0xf5, 0xe9, 0x9a, 0x69},
		63: {0x72, 0x45, 0x06, 0xeb, 0x4c, 0x32, 0x8a, 0x95},
	} {
		got := binary.LittleEndian.AppendUint64(nil, keyOf(k).sum(number(0), number(8), text[16:length]))
		if !bytes.Equal(got, want) {
			t.Errorf("over %d bytes: %x, want %x", length, got, want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	k, body := key{1, 2}, make([]byte, 250)
	for b.Loop() {
		k.sum(sumTask, 1, body)
	}
}
