package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
)

// hints are hints by the first word of the server's error.
var hints = []struct {
	word string // the server's error, or a part of it
	says string
}{
	{"OOM ", "Redis has reached its maxmemory and takes no new tasks: raise maxmemory, or keep ended tasks for a shorter time (retention)"},
	{"MISCONF", "Redis cannot write its files and takes no writes: see its log, and the disk that it writes to"},
	{"READONLY", "Redis is a read-only replica now and takes no writes: give the address of the primary"},
	{"LOADING", "Redis is reading its files after a start: try again when it has"},
	{"BUSY ", "Redis is busy with a script of someone else that does not end: end it with SCRIPT KILL"},
	{"MASTERDOWN", "Redis is a replica that has lost its primary: give the address of the primary"},
	{"NOREPLICAS", "Redis has too few replicas (min-replicas-to-write) and takes no writes: see that they are connected"},
	{"CLUSTERDOWN", "the Redis cluster is down: see CLUSTER INFO"},
	{"WRONGPASS", "Redis refuses the user or the password of the store's URL: redis://USER:PASSWORD@HOST:PORT"},
	{"NOAUTH", "Redis wants a password: redis://:PASSWORD@HOST:PORT, or redis://USER:PASSWORD@HOST:PORT"},
	{"AUTH <password> called without any password", "Redis has no password, and the store's URL has one: leave it out"},
	{"max number of clients", "Redis has as many clients as it takes: raise maxclients"},
	{"invalid DB index", "Redis has no database of that number: see the end of the store's URL, and databases in redis.conf"},
	{"DB index is out of range", "Redis has no database of that number: see the end of the store's URL, and databases in redis.conf"},
	{"SELECT is not allowed in cluster mode", "a Redis cluster has no numbered databases: leave the number out of the store's URL"},
	{"WRONGTYPE", "a key of the store in Redis holds something else: give another prefix in the store's URL (?prefix=NAME)"},
}

// convertError converts an error of the client. Its code says whether a retry may succeed:
// CodeUnavailable, or CodeStoreFailed.
func (g *backend) convertError(ctx context.Context, err error) error {
	code, message := signalbox.CodeStoreFailed, explain(g.address, err)
	switch why := ctx.Err(); {
	case errors.Is(why, context.Canceled):
		message, err = "nobody waits for the answer of the store any more", why
	case errors.Is(err, rueidis.ErrClosing) || g.closing.Err() != nil:
		code, message = signalbox.CodeUnavailable, "the store is closed"
	case isTransient(err):
		code = signalbox.CodeUnavailable
	case full(err):
		code = signalbox.CodeStoreFull
	}
	return &signalbox.Error{Code: code, Message: message, Err: err}
}

// full reports whether the server is out of memory.
func full(err error) bool {
	refused, ok := rueidis.IsRedisErr(err)
	return ok && strings.Contains(refused.Error(), "OOM ")
}

// explain says what is wrong and what to do, with only the server's address of the URL.
func explain(address string, err error) string {
	refused, ok := rueidis.IsRedisErr(err)
	if !ok {
		return unreachable(address, err)
	}
	text := refused.Error()
	for _, c := range hints {
		if strings.Contains(text, c.word) {
			return c.says
		}
	}
	if denied(text) {
		return "Redis does not allow the user of the store's URL what the store needs (" + text + "): grant it with ACL SETUSER USER ~{PREFIX}:* &{PREFIX}:* +@all -@admin -@dangerous +info"
	}
	return "Redis refused it: " + text
}

func denied(text string) bool {
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "The user executing the script can't")
}

func unreachable(address string, err error) string {
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return "Redis at " + address + " shows a certificate that does not hold: have this host trust who signed it (SSL_CERT_FILE names a file of such), and use the name that it is for"
	case neverSent(err):
		return "Redis at " + address + " cannot be reached: is it running, and are host and port right?"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "Redis at " + address + " does not answer: is it overloaded, or the network down?"
	}
	return "the connection with Redis at " + address + " broke"
}

// unopened is explain for the first connection, where the URL may be to blame.
func (g *backend) unopened(err error) error {
	message := explain(g.address, err)
	if _, said := rueidis.IsRedisErr(err); !said && !neverSent(err) {
		if g.option.TLSConfig != nil {
			message += " (if it does not speak TLS at that port, the URL begins with redis://)"
		} else {
			message += " (if it speaks only TLS at that port, the URL begins with rediss://)"
		}
	}
	return refuse(message, err)
}

// neverSent reports whether the server certainly did not run the command.
func neverSent(err error) bool {
	if _, ok := rueidis.IsRedisErr(err); ok {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// isTransient reports whether a retry may succeed.
func isTransient(err error) bool {
	refused, ok := rueidis.IsRedisErr(err)
	if !ok {
		return !errors.Is(err, rueidis.ErrClosing) && !errors.Is(err, context.Canceled)
	}
	words := []string{"LOADING", "READONLY", "BUSY ", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(refused.Error(), word) })
}

func readOnly(err error) bool {
	refused, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(refused.Error(), "READONLY") || strings.HasPrefix(refused.Error(), "MASTERDOWN"))
}
