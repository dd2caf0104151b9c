package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
)

// A device is a browser in which a user has logged in before: it shows a
// secret that it was given then. Its attempts are counted by themselves, so
// that whoever guesses passwords from the same address, which may be that of a
// whole office or of a proxy, does not lock out those who work there. The
// secrets end with the process, as the counts do.

// newDevice makes the secret of a device of a user; "" where that fails.
func (k *Keeper) newDevice(user string) string {
	var id [16]byte
	if _, err := io.ReadFull(k.opts.Random, id[:]); err != nil {
		return ""
	}
	name := base64.RawURLEncoding.EncodeToString(id[:])
	return name + "." + k.deviceMAC(user, name)
}

func (k *Keeper) deviceMAC(user, name string) string {
	mac := hmac.New(sha256.New, k.devices[:])
	mac.Write([]byte(user + "\n" + name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// deviceOf is the name of a device in which the user has logged in before;
// "" where the secret is none.
func (k *Keeper) deviceOf(user, secret string) string {
	name, mac, _ := strings.Cut(secret, ".")
	if name == "" || !hmac.Equal([]byte(mac), []byte(k.deviceMAC(user, name))) {
		return ""
	}
	return name
}
