package identity

import (
	"testing"
)

// FuzzPHC checks that no stored text makes a password check cost more than the
// limits allow.
func FuzzPHC(f *testing.F) {
	for _, s := range []string{
		"$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=99999999,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA", "", "$$$$$", "$argon2id$v=19$m=-8,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, salt, key, err := parsePHC(s)
		if err != nil {
			if salt != nil || key != nil || err.Error() == "" {
				t.Fatalf("%q: %v with %d bytes of salt", s, err, len(salt))
			}
			return
		}
		if c.MemoryKiB < 8 || c.MemoryKiB > mostMemoryKiB || c.Passes < 1 || c.Passes > mostPasses || len(salt) < 8 || len(key) < 16 || len(key) > 64 {
			t.Fatalf("%q: %+v, salt of %d bytes, key of %d", s, c, len(salt), len(key))
		}
	})
}
