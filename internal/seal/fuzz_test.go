package seal_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/seal"
)

// FuzzOpen: a sealed value opens only in its context, and other data never
// opens.
func FuzzOpen(f *testing.F) {
	s, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		f.Fatal(err)
	}
	sealed := s.Seal([]byte("swordfish"), "queue-1")
	f.Add(sealed, "queue-1", []byte("x"))
	f.Add(sealed[:len(sealed)-1], "queue-1", []byte{})
	f.Add([]byte{}, "", []byte{0})
	f.Fuzz(func(t *testing.T, data []byte, context string, plain []byte) {
		if got, err := s.Open(data, context); err == nil && (context != "queue-1" || string(got) != "swordfish") {
			t.Fatalf("%x opens for %q: %q", data, context, got)
		}
		own := s.Seal(plain, context)
		if got, err := s.Open(own, context); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%q sealed for %q opens as %q, %v", plain, context, got, err)
		}
		if _, err := s.Open(own, context+"x"); err == nil {
			t.Fatalf("a value sealed for %q opens for another context", context)
		}
		own[len(own)-1] ^= 1
		if _, err := s.Open(own, context); err == nil {
			t.Fatal("a changed value opens")
		}
	})
}

// FuzzKey: a text is either a key of 32 bytes or refused with a message that
// says how to make a key and does not repeat the text.
func FuzzKey(f *testing.F) {
	for _, s := range []string{hex.EncodeToString(bytes.Repeat([]byte{1}, 32)), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", " x ", "", "00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := seal.Parse(text)
		switch {
		case err != nil && (len(text) > 12 && bytes.Contains([]byte(err.Error()), []byte(text))):
			t.Fatalf("the refusal repeats the key: %v", err)
		case err != nil:
			return
		case len(key) != seal.KeyBytes:
			t.Fatalf("a key of %d bytes", len(key))
		}
		if again, err := seal.Parse(hex.EncodeToString(key)); err != nil || !bytes.Equal(again, key) {
			t.Fatalf("%x is read as %x, %v", key, again, err)
		}
	})
}
