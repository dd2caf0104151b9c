package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// bench holds what the sections share.
type bench struct {
	dir     string
	rounds  int
	binary  string
	figures []figure
	n       int
}

func (b *bench) add(name string, value float64, unit, target string, met *bool, note string) {
	b.figures = append(b.figures, figure{name, value, unit, target, met, note})
	fmt.Fprintf(os.Stderr, "%-60s %10.2f %s\n", name, value, unit)
}

func is(met bool) *bool { return &met }

func (b *bench) build(ctx context.Context) error {
	b.binary = filepath.Join(b.dir, "signalbox")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "github.com/signalbox-ai/signalbox/cmd/signalbox")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// director is a running director.
type director struct {
	url string
	cmd *exec.Cmd
}

var addressForm = regexp.MustCompile(`at (http://[0-9.:]+)`)

// start runs a director on a free port, by way of a prefix such as strace.
func (b *bench) start(ctx context.Context, prefix ...string) (*director, error) {
	b.n++
	data := filepath.Join(b.dir, fmt.Sprintf("data-%d", b.n))
	argv := append(prefix, b.binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "error")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data, "SIGNALBOX_QUEUE_MAX_SIZE=1000000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := addressForm.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &director{m[1], cmd}, nil
		}
	}
	_ = cmd.Wait()
	return nil, fmt.Errorf("the director did not say where it is")
}

func (d *director) stop() {
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGTERM)
	_ = d.cmd.Wait()
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
