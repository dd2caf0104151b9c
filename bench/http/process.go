package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/figures"
)

// bench holds what the sections share.
type bench struct {
	dir     string
	rounds  int
	binary  string
	figures []figures.Figure
	n       int
}

func (b *bench) add(name string, value float64, unit, target string, met *bool, note string) {
	b.figures = append(b.figures, figures.Figure{Name: name, Value: value, Unit: unit, Target: target, Met: met, Note: note})
	fmt.Fprintf(os.Stderr, "%-60s %10.2f %s\n", name, value, unit)
}

func is(met bool) *bool { return &met }

func (b *bench) build(ctx context.Context) error {
	var err error
	b.binary, err = director.Build(ctx, b.dir)
	return err
}

// start runs a director on a free port, by way of a prefix such as strace.
func (b *bench) start(ctx context.Context, prefix ...string) (*director.Process, error) {
	b.n++
	data := filepath.Join(b.dir, fmt.Sprintf("data-%d", b.n))
	argv := append(prefix, b.binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "error")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data, "SIGNALBOX_QUEUE_MAX_SIZE=1000000")
	return director.Start(cmd)
}

// newClient is one submitter with a connection of its own.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 30 * time.Second}
}

var body = []byte(`{"prompt":"sleep 0ms","source":"api"}`)

// submit stores one task and does not return before it is acknowledged.
func submit(ctx context.Context, c *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/queue/task", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("submit: %s: %s", resp.Status, text)
	}
	return err
}
