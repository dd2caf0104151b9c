package overhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

var folders atomic.Int64

// start starts a director on a free port with a new data folder, optionally through a
// prefix such as strace.
func start(ctx context.Context, b *measure.Bench, prefix ...string) (*director.Process, error) {
	return startOn(ctx, b, filepath.Join(b.Dir, fmt.Sprintf("data-%d", folders.Add(1))), prefix...)
}

func startOn(ctx context.Context, b *measure.Bench, data string, prefix ...string) (*director.Process, error) {
	binary, err := director.Build(ctx, b.Bin)
	if err != nil {
		return nil, err
	}
	argv := append(prefix, binary, "director", "--open", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "error")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data, "SIGNALBOX_QUEUE_MAX_SIZE=1000000")
	return director.Start(cmd)
}

// kept starts a director that is used in all rounds.
func kept(ctx context.Context, b *measure.Bench, prefix ...string) (*director.Process, error) {
	d, err := start(ctx, b, prefix...)
	if err == nil {
		b.Cleanup(d.Stop)
	}
	return d, err
}

// newClient returns a client with its own connection.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 30 * time.Second}
}

var body = []byte(`{"prompt":"sleep 0ms","source":"api"}`)

// submit submits one task and returns when it is acknowledged.
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
