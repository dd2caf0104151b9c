package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSecretFile bounds a file with a token, in bytes.
const maxSecretFile = 4096

// EnsureSecret returns the secret in a file, and makes both where there is
// none. Of several processes that start at once all get the same one.
//
// Errors: what ReadSecret says of the file; a file of another user, who may have
// put it there; and, where there is none yet, a folder that others can write to.
func EnsureSecret(path string) (string, error) {
	secret, err := ownSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600, O_EXCL
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(rand.Text() + rand.Text() + "\n") // 260 bits
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) { // whole or not at all; the first stays
		return "", err
	}
	return ownSecret(path)
}

// ownSecret returns the secret in a file that no other user can have put there.
func ownSecret(path string) (string, error) {
	secret, info, err := readSecret(path)
	if err == nil && !Own(info) {
		return "", fmt.Errorf("%s belongs to another user, who knows what is in it: remove it, and see that nobody else can write to its folder", path)
	}
	return secret, err
}

// ownFolder makes a folder that only its owner can use, or makes sure that
// nobody else can write to the one that is there.
func ownFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !Own(info) {
		return fmt.Errorf("%s will not hold a token: it must be your folder, and writable by nobody else (chmod go-w %s)", path, path)
	}
	return nil
}

// Own reports whether a file or folder belongs to the user of this process or
// to root, and nobody else can write to it.
func Own(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm()&0o022 == 0 && (!ok || stat.Uid == 0 || int(stat.Uid) == os.Getuid())
}

// ReadSecret returns the token in a file.
//
// Errors: fs.ErrNotExist; a file that is empty, not regular, too long, or
// readable by other users of the machine.
func ReadSecret(path string) (string, error) {
	secret, _, err := readSecret(path)
	return secret, err
}

func readSecret(path string) (string, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxSecretFile:
		return "", nil, fmt.Errorf("%s: want a file with a token in it", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", nil, fmt.Errorf("%s can be read by other users (mode %04o): chmod 600 %s, and make a new token if they may have read it", path, info.Mode().Perm(), path)
	}
	data := make([]byte, info.Size())
	n, err := f.Read(data)
	if err != nil && n == 0 {
		return "", nil, fmt.Errorf("%s: there is no token in it", path)
	}
	secret := strings.TrimSpace(string(data[:n]))
	if !validToken(secret) {
		return "", nil, fmt.Errorf("%s: want %s in it, and nothing else", path, wantToken)
	}
	return secret, info, nil
}
