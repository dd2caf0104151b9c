package dashboard

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/browser"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// ready is injected into a page to record when a person can use it: live data and
// lanes are shown, and a task can be submitted.
const ready = `
new MutationObserver((_, self) => {
	if (!document.querySelector(".pill-live") || !document.querySelector(".lane") || !document.querySelector(".top button.primary:not([disabled])")) return;
	window.interactiveAt = performance.now();
	self.disconnect();
}).observe(document, { childList: true, subtree: true, attributes: true });`

// firstPage measures the cost of the first page on a first visit.
func (r *rig) firstPage(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
	data := filepath.Join(b.Dir, "data")
	cmd := exec.CommandContext(ctx, r.binary, "up", "--open", "--agents", "demo", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--on-shutdown", "stop", "--log-level", "error")
	cmd.Dir, cmd.Env = b.Dir, append(os.Environ(), "HOME="+b.Dir, "SIGNALBOX_HOME="+data)
	d, err := director.Start(cmd)
	if err != nil {
		return nil, err
	}
	b.Cleanup(d.Stop)
	wire, err := newWire(strings.TrimPrefix(d.URL, "http://"))
	if err != nil {
		return nil, err
	}
	b.Cleanup(wire.close)
	if _, err := r.open(d.URL); err != nil { // the first load starts processes that the browser starts once, and waits for the agent
		return nil, err
	}
	return func(context.Context) (measure.Values, error) {
		var times, bytes []float64
		for range loads {
			took, err := r.open(d.URL)
			if err != nil {
				return nil, err
			}
			before := wire.bytes.Load()
			if _, err := r.open("http://" + wire.addr()); err != nil {
				return nil, err
			}
			times, bytes = append(times, took), append(bytes, float64(wire.bytes.Load()-before)/1000)
		}
		return measure.Values{interactive: measure.Median(times), size: measure.Median(bytes)}, nil
	}, nil
}

// open loads the first page, and returns after how many ms it was usable.
func (r *rig) open(address string) (took float64, err error) {
	page, err := r.browser.Open(browser.Look{Script: ready})
	if err != nil {
		return 0, err
	}
	defer page.Close()
	if err := page.Go(address + "/ui/"); err != nil {
		return 0, err
	}
	if err := page.Until("window.interactiveAt"); err != nil {
		return 0, err
	}
	return took, page.Ask("interactiveAt", &took)
}

// wire is a proxy to a director that counts bytes.
type wire struct {
	listener net.Listener
	to       string
	bytes    atomic.Int64
}

func newWire(to string) (*wire, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, to: to}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(conn)
		}
	}()
	return w, nil
}

func (w *wire) addr() string { return w.listener.Addr().String() }
func (w *wire) close()       { _ = w.listener.Close() }

func (w *wire) carry(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", w.to, 5*time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, &counted{from, &w.bytes})
		_ = to.Close()
	}()
	_, _ = io.Copy(from, &counted{to, &w.bytes})
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
