package director

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Limits of a connection. There is no limit on a whole answer: long polls and
// streams last, and each write of theirs has its own (writeTimeout).
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	shutdownTimeout   = 10 * time.Second // for answers under way, once streams have ended
)

// Serve answers requests on l until ctx ends. Then open streams and long
// polls end cleanly, answers under way are finished, and it returns nil.
// A listener that is not on loopback is refused without a token.
func (d *Director) Serve(ctx context.Context, l net.Listener) error {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		if err := CheckListen(tcp.String(), d.identity); err != nil {
			return err
		}
	}
	switch {
	case d.identity.Open() && d.cfg.ToolsOnly: // which keeps no tokens, and whose only one stands in its configuration
		d.log.Warn("this gateway is open: whoever reaches it, every program of this host, may call its tools",
			"close", "start it with --token-file FILE")
	case d.identity.Open():
		d.log.Warn("this director is open: whoever reaches it, every program of this host, has every right",
			"close", "start it without --open")
	}
	srv := &http.Server{
		Handler:           d.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		d.Stop()
		return err
	case <-ctx.Done():
	}
	d.SetDraining(true)
	d.Stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	<-failed //nolint:errcheck // it was told to end
	d.terms.wait(shutdownTimeout)
	return err
}

// CheckListen refuses an address that others can reach unless a token or an
// admin's password keeps them out: whoever reaches a director can run prompts
// on its agents.
func CheckListen(addr string, id *identity.Keeper) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return signalbox.Invalid("addr", "%q is not an address to listen on: want HOST:PORT, such as 127.0.0.1:8080", addr)
	}
	if isLoopback(host) {
		return nil
	}
	const cure = "set one of 16 characters or more (--token-file or SIGNALBOX_TOKEN; openssl rand -hex 32 makes one), or listen on "
	switch {
	case id.Open():
		return signalbox.Invalid("token", "will not listen on %s without a token, for whoever reaches it could run tasks and tools: %s127.0.0.1:%s (a director: and make an admin there first)", addr, cure, port)
	case id.Static() && id.ShortStatic():
		return signalbox.Invalid("token", "will not listen on %s with a token that is so short that it can be guessed: %s127.0.0.1:%s", addr, cure, port)
	}
	return nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
