// Package seal encrypts values that must not be readable in a store: the
// environment of tasks and the tokens of agents.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/atomicfile"
)

// KeyBytes is the length of the key, in bytes.
const KeyBytes = 32

// KeyFile is the file in the data folder that has the key.
const KeyFile = "secret.key"

// EnvKey is the environment variable with the key if several directors share
// a store: 32 bytes in hex or base64.
const EnvKey = "SIGNALBOX_SECRET_KEY"

// Sealer seals with AES-256-GCM and makes keyed digests with HMAC-SHA-256.
type Sealer struct {
	aead cipher.AEAD
	mac  []byte
	run  []byte
	rows []byte
}

// rowKeyBytes is the length of the key for a store's rows, in bytes.
const rowKeyBytes = 16

// RowKey is the key of the checksums with which a store detects modified rows.
func (s *Sealer) RowKey() []byte { return s.rows }

// New makes a Sealer from a key of 32 bytes.
func New(key []byte) (*Sealer, error) {
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("a secret key has %d bytes, not %d", KeyBytes, len(key))
	}
	enc, err := hkdf.Key(sha256.New, key, nil, "signalbox env", KeyBytes)
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Key(sha256.New, key, nil, "signalbox digest", KeyBytes)
	if err != nil {
		return nil, err
	}
	run, err := hkdf.Key(sha256.New, key, nil, "signalbox run token", KeyBytes)
	if err != nil {
		return nil, err
	}
	rows, err := hkdf.Key(sha256.New, key, nil, "signalbox rows", rowKeyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(enc)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Sealer{aead: aead, mac: mac, run: run, rows: rows}, nil
}

// Parse decodes a key from hex or base64.
func Parse(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == KeyBytes {
			return key, nil
		}
	}
	return nil, fmt.Errorf("not a secret key: want %d bytes in hex or base64, such as the output of openssl rand -hex %d", KeyBytes, KeyBytes)
}

// Load returns the Sealer of a data folder: with the key in the environment
// variable SIGNALBOX_SECRET_KEY if env is not empty, otherwise with the key
// in <dir>/secret.key, which is created on first use with mode 0600.
func Load(dir, env string) (*Sealer, error) {
	if env != "" {
		key, err := Parse(env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvKey, err)
		}
		return New(key)
	}
	path := filepath.Join(dir, KeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("secret key: %w", err)
	case info.Mode().Perm()&0o077&permBits != 0:
		return nil, fmt.Errorf("secret key %s can be read by others (mode %04o): run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	if user, ok := owner(info); ok && user != os.Geteuid() {
		return nil, fmt.Errorf("secret key %s belongs to user %d, who knows it: if another user put it there, remove it and close the folder (chmod 700 %s); if it is yours, chown it", path, user, dir)
	}
	key, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return New(key)
}

// create writes a new key atomically.
func create(path string) ([]byte, error) {
	text := []byte(hex.EncodeToString(random(KeyBytes)) + "\n")
	return text, atomicfile.Write(path, text)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand.Read ends the process instead
	return b
}

// Seal encrypts plain and binds it to a context, such as a task ID: it opens
// only with the same context.
func (s *Sealer) Seal(plain []byte, context string) []byte {
	return s.aead.Seal(nil, nil, plain, []byte(context))
}

// Open decrypts what Seal made for the same context.
func (s *Sealer) Open(sealed []byte, context string) ([]byte, error) {
	plain, err := s.aead.Open(nil, nil, sealed, []byte(context))
	if err != nil {
		return nil, errors.New("cannot be decrypted: it was sealed with another key")
	}
	return plain, nil
}

// Digest returns a keyed digest of data: the same data has the same digest,
// and without the key nothing about the data can be guessed from it.
func (s *Sealer) Digest(data []byte) string {
	h := hmac.New(sha256.New, s.mac)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
