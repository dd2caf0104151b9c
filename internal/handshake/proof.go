package handshake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

// Path is the path for proof requests.
const Path = "/.well-known/signalbox/prove"

// Key is derived from a token by both ends.
type Key [sha256.Size]byte

// KeyOf derives the key of a token.
func KeyOf(token string) Key {
	sum := sha256.Sum256([]byte(token))
	return KeyOfHash(sum[:])
}

// KeyOfHash derives the key of a token from the token's SHA-256.
func KeyOfHash(hash []byte) (k Key) {
	mac := hmac.New(sha256.New, hash)
	mac.Write([]byte("signalbox connection v1"))
	mac.Sum(k[:0])
	return k
}

// Selector identifies a token to those who know it: by its public part if a
// director made it (sbxa_ID_SECRET), otherwise by a hash.
func Selector(token string) string {
	if parts := strings.SplitN(token, "_", 3); len(parts) == 3 && len(parts[0]) == 4 && strings.HasPrefix(parts[0], "sbx") &&
		len(parts[1]) >= 8 && len(parts[1]) <= 64 && len(parts[2]) >= 32 {
		return parts[0] + "_" + parts[1]
	}
	sum := sha256.Sum256([]byte(token))
	sum = sha256.Sum256(append([]byte("signalbox selector v1"), sum[:]...))
	return hex.EncodeToString(sum[:8])
}

// The two ends, as part of what their codes cover: the code of one end cannot
// be used as the other's.
const (
	dialer   = "client"
	acceptor = "server"
)

func (k Key) code(end, nonce, address string) string {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(end + "\n" + nonce + "\n" + address))
	return hex.EncodeToString(mac.Sum(nil))
}

// Question is the request for a proof of a token.
func Question(token, nonce, address string) api.ProveRequest {
	return api.ProveRequest{Selector: Selector(token), Nonce: nonce, Address: address, MAC: KeyOf(token).code(dialer, nonce, address)}
}

// Outcome is the result of a proof request.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // the client does not know the token
	Relayed                // the client knows it, but dialled another address of this host
	Proved
)

// Answer checks the client's code and makes the proof. Only a client that
// knows the token gets one, so that the server is no oracle, and only for the
// address to which the connection was made: otherwise a listener at another
// port of this host could forward the request and pass the answer off as its
// own.
func Answer(r *http.Request, q api.ProveRequest, k Key) (api.Proof, Outcome) {
	if !hmac.Equal([]byte(k.code(dialer, q.Nonce, q.Address)), []byte(q.MAC)) || len(q.Nonce) != 2*nonceBytes {
		return api.Proof{}, Unknown
	}
	if !arrivedAt(r, q.Address) {
		return api.Proof{}, Relayed
	}
	return api.Proof{MAC: k.code(acceptor, q.Nonce, q.Address)}, Proved
}

// arrivedAt reports whether a connection from this host was made to the
// address. A connection from another host is accepted: it may have been made
// to an address that is unknown here, of a container's host or a router.
func arrivedAt(r *http.Request, address string) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	local, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return false
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	from, to := plain(remote).Addr(), plain(local).Addr()
	if from != to && !(from.IsLoopback() && to.IsLoopback()) {
		return true
	}
	dialled, err := netip.ParseAddrPort(address)
	return err == nil && plain(dialled) == plain(local)
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
