package identity

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/signalbox-ai/signalbox"
)

// Lengths of a password in bytes. The upper one bounds what a stranger can
// make the director hash.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// maxHashes are made at once: each takes a processor and Cost.MemoryKiB.
// maxWaiting logins wait for that.
const (
	maxHashes  = 2
	maxWaiting = 32
)

const (
	saltBytes = 16
	keyBytes  = 32
)

// Cost says what one guess at a password costs (argon2id, one lane).
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
}

// DefaultCost is above what RFC 9106 and OWASP ask for where memory is scarce.
var DefaultCost = Cost{MemoryKiB: 64 << 10, Passes: 2}

// What a stored hash may ask for: the store is not to take the memory away.
const (
	mostMemoryKiB = 256 << 10
	mostPasses    = 10
)

// encode writes a hash in the PHC string form.
func (c Cost) encode(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, b64.EncodeToString(salt), b64.EncodeToString(key))
}

// nobody is a hash that no password has.
func (c Cost) nobody() string { return c.encode(make([]byte, saltBytes), make([]byte, keyBytes)) }

func checkPassword(password string) error {
	if len(password) < MinPassword || len(password) > MaxPassword {
		return signalbox.Invalid("password", "password must be %d to %d bytes long", MinPassword, MaxPassword)
	}
	return nil
}

// hashPassword makes the form of a password that is stored.
func (k *Keeper) hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := io.ReadFull(k.opts.Random, salt); err != nil {
		return "", fmt.Errorf("read random bytes for a password: %w", err)
	}
	leave, err := k.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	c := k.opts.Cost
	return c.encode(salt, c.derive(password, salt, keyBytes)), nil
}

// collectFrom is the memory of a hash from which on it is worth a collection.
const collectFrom = 16 << 10 // KiB

// derive makes the key of a password. Its memory is free for the next one at
// once: a server that collects its garbage late would else grow to many times
// what maxHashes need, as soon as a stranger guesses passwords.
func (c Cost) derive(password string, salt []byte, n uint32) []byte {
	key := argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, 1, n)
	if c.MemoryKiB >= collectFrom {
		runtime.GC()
	}
	return key
}

// enter waits until a hash may be made.
func (k *Keeper) enter(ctx context.Context) (leave func(), err error) {
	if k.waiting.Add(1) > maxWaiting {
		k.waiting.Add(-1)
		return nil, signalbox.Errorf(signalbox.CodeRateLimited, "too many people are logging in at this moment: try again")
	}
	defer k.waiting.Add(-1)
	select {
	case k.hashing <- struct{}{}:
		return func() { <-k.hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// verify reports whether the password is that of the stored form.
func (k *Keeper) verify(ctx context.Context, stored, password string) (bool, error) {
	c, salt, want, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	leave, err := k.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	got := c.derive(password, salt, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func parsePHC(s string) (c Cost, salt, key []byte, err error) {
	bad := signalbox.Errorf(signalbox.CodeStoreCorrupt, "a stored password is not in the form $argon2id$v=19$m=…,t=…,p=1$salt$hash")
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, bad
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &c.MemoryKiB, &c.Passes); err != nil {
		return c, nil, nil, bad
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	key, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(salt) < 8 || len(key) < 16 || len(key) > 64 ||
		c.MemoryKiB < 8 || c.MemoryKiB > mostMemoryKiB || c.Passes < 1 || c.Passes > mostPasses {
		return c, nil, nil, bad
	}
	return c, salt, key, nil
}
