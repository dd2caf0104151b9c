package overhttp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

const slowness = 1000 // µs added to each sync, as strace counts

// submits measures clients that submit to a director that is used in all rounds.
func submits(name string, clients int, prefix func(b *measure.Bench) []string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		var before []string
		if prefix != nil {
			if before = prefix(b); before == nil {
				return nothing, nil
			}
		}
		d, err := kept(ctx, b, before...)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) { return rate(ctx, b, d.URL, clients) }, nil
	}}
}

// nothing is the trial of a side that this machine cannot measure.
func nothing(context.Context) (measure.Values, error) { return measure.Values{}, nil }

func rate(ctx context.Context, b *measure.Bench, url string, n int) (measure.Values, error) {
	clients := make([]*http.Client, n)
	for i := range clients {
		clients[i] = newClient()
		defer clients[i].CloseIdleConnections()
	}
	return load.Run(ctx, n, b.Span, func(ctx context.Context, i int) error { return submit(ctx, clients[i], url, body) })
}

// slowDisk adds a millisecond to each sync.
func slowDisk(b *measure.Bench) []string {
	if !traced() {
		return nil
	}
	return []string{"strace", "-f", "--seccomp-bpf", "-qq", "-o", filepath.Join(b.Dir, "slow.trace"),
		"-e", "trace=fsync,fdatasync", "-e", fmt.Sprintf("inject=fsync,fdatasync:delay_exit=%d", slowness)}
}

func traced() bool {
	_, err := exec.LookPath("strace")
	if err != nil {
		fmt.Fprintln(os.Stderr, "no strace: the figures with a slow disk, and the number of syncs, are skipped")
	}
	return err == nil
}

// loopback is the limit: requests of the same size to a server that does nothing.
func loopback(name string, clients int) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })}
		go func() { _ = s.Serve(l) }()
		b.Cleanup(func() { _ = s.Close() })
		return func(ctx context.Context) (measure.Values, error) {
			return rate(ctx, b, "http://"+l.Addr().String(), clients)
		}, nil
	}}
}

var syncLine = regexp.MustCompile(`(?m)\b(fsync|fdatasync)\(`)

// syncs counts the syncs of sequential submits.
func syncs(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if !traced() {
			return nothing, nil
		}
		trace := filepath.Join(b.Dir, "syncs.trace")
		d, err := kept(ctx, b, "strace", "-f", "--seccomp-bpf", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync")
		if err != nil {
			return nil, err
		}
		c := newClient()
		if err := submit(ctx, c, d.URL, body); err != nil { // the first may create files
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			before, err := count(trace)
			if err != nil {
				return nil, err
			}
			n := b.Scale(200)
			for range n {
				if err := submit(ctx, c, d.URL, body); err != nil {
					return nil, err
				}
			}
			after, err := count(trace)
			return measure.Values{"syncs": float64(after-before) / float64(n)}, err
		}, nil
	}}
}

func count(trace string) (int, error) {
	data, err := os.ReadFile(trace)
	return len(syncLine.FindAll(data, -1)), err
}
