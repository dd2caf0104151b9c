package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// reachable is the address under which a listener is reached from this host.
func reachable(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil || !at.Addr().IsUnspecified() {
		return a.String()
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}

// furtherFile is where the command line finds the token of a director that it
// is told to use, also where another one is the one that it finds by itself.
func furtherFile(url string) string {
	return config.FurtherDirectorFile(config.Home(os.LookupEnv), url)
}

func directorFile() string { return config.DirectorFile(config.Home(os.LookupEnv)) }

// announce writes where this director is, for the command line to find it. A
// director that is there already stays the one that is found.
func announce(cfg config.Config, url string) error {
	here := placeOf(cfg, url)
	if err := writeJSON(furtherFile(url), here); err != nil {
		return err
	}
	if f, ok := readDirectorFile(); ok && f.URL != url && f.PID != os.Getpid() && proc.Running(f.PID) && answers(f.URL) {
		return fmt.Errorf("%s is the director that runs at %s; use --director %s for this one", directorFile(), f.URL, url)
	}
	return writeJSON(directorFile(), here)
}

// announceGateway writes where this gateway is, which stands alone, for the
// command line to find its token where --director names it.
func announceGateway(cfg config.Config, url string) error {
	return writeJSON(furtherFile(url), placeOf(cfg, url))
}

func placeOf(cfg config.Config, url string) api.DirectorFile {
	return api.DirectorFile{URL: url, PID: os.Getpid(), Data: cfg.Data, TokenFile: cfg.TokenFile, StartedAt: time.Now().UTC().Truncate(time.Second)}
}

// answers reports whether a director is at url.
func answers(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// withdraw removes what announce wrote, unless another director has written
// since.
func withdraw(url string) {
	var own api.DirectorFile
	if readJSON(furtherFile(url), &own) == nil && own.PID == os.Getpid() {
		_ = os.Remove(furtherFile(url))
	}
	if f, ok := readDirectorFile(); ok && f.PID == os.Getpid() && f.URL == url {
		_ = os.Remove(directorFile()) // who reads it finds nobody at the address
	}
}

func readDirectorFile() (f api.DirectorFile, ok bool) { return f, readJSON(directorFile(), &f) == nil }

// writeJSON replaces a file as a whole, mode 0600.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already where all went well
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// again returns a context that ends when one more signal comes: the person
// does not want to wait.
func again(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel(errSecondSignal)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// isLoopback reports whether only this host can reach a listener on host.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// listen opens the address; when it is taken, the error says by whom as far
// as that can be told, and which flag helps.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	for begun := time.Now(); ; {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, addressInUse) {
			return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
		}
		holder := "another program"
		if f, ok := readDirectorFile(); ok && sameAddr(f, addr) {
			if !proc.Running(f.PID) && time.Since(begun) < deadHolds {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			holder = fmt.Sprintf("a director with data folder %s (pid %d)", f.Data, f.PID)
		}
		return nil, fmt.Errorf("%s is taken by %s: stop it, or choose another address with --addr, such as --addr 127.0.0.1:0 for any free port", addr, holder)
	}
}

// deadHolds bounds how long the port of a director that was killed is waited for:
// a command that it was just about to start has it until it runs.
const deadHolds = 2 * time.Second

func sameAddr(f api.DirectorFile, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && strings.HasSuffix(f.URL, ":"+port)
}
