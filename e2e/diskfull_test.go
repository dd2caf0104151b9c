//go:build linux

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testdisk"
)

// With a full disk nothing is acknowledged without being stored, stored tasks
// are kept, and everything continues once there is space again.
func TestDiskFull(t *testing.T) {
	b := newBox(t)
	if err := os.Mkdir(b.data, 0o700); err != nil {
		t.Fatal(err)
	}
	testdisk.Mount(t, b.data, "size=8m")
	t.Cleanup(b.sweep) // before the disk is unmounted
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "100000"
	addr := freePort(t)
	director := b.director("--addr", addr)
	c := b.client(director.url)
	kept := []string{b.submit(c, prompt("before the disk is full"))}
	balloon := filepath.Join(b.data, "balloon")
	testdisk.Fill(t, balloon)

	// Without space a submit is refused, or the director exits because the
	// outcome of a write is unknown; it never answers 201.
	refused := false
	for n := range 3000 {
		got, err := submitOnce(b, director.url, fmt.Sprintf("task %d %s", n, strings.Repeat("x", 4000)))
		if err == nil {
			kept = append(kept, got.QueueID)
			continue
		}
		refused = true
		var answer *client.Error
		switch {
		case errors.As(err, &answer) && answer.Status < 500:
			t.Fatalf("a full disk was answered with %d: %v", answer.Status, err)
		case errors.As(err, &answer):
			full := answer.Status == http.StatusInsufficientStorage && answer.Code() == "store_full" && strings.Contains(answer.Body.Hint, "make room on the disk")
			if !full && answer.Status != http.StatusInternalServerError { // 500: the outcome is unknown, and it exits
				t.Errorf("the submitter got %+v", answer)
			}
			director.says("disk is full") // the cause is for the operator
		case !client.IsUnreachable(err):
			t.Errorf("%v", err)
		}
		break
	}
	if !refused {
		t.Fatal("3000 submits fitted on a full disk")
	}
	if err := os.Remove(balloon); err != nil {
		t.Fatal(err)
	}
	select {
	case <-director.done:
		if said := director.err.text(); director.code == 0 || !strings.Contains(said, "disk") && !strings.Contains(said, "space") {
			t.Errorf("it ended with %d and did not say why:\n%s", director.code, said)
		}
		director = b.director("--addr", addr)
	default:
	}
	kept = append(kept, b.submit(b.client(director.url), prompt("there is space again")))
	b.allThere(director.url, kept)
	director.kill()
	director = b.director("--addr", addr)
	b.allThere(director.url, kept)
	if resp, err := http.Get(director.url + "/readyz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("not ready: %v, %v", resp, err)
	}
}

// submitOnce submits without retries.
func submitOnce(b *box, url, text string) (api.SubmitResponse, error) {
	c, err := client.New(url, client.Options{Tries: 1, Token: b.token()})
	if err != nil {
		return api.SubmitResponse{}, err
	}
	return c.Submit(b.ctx(), prompt(text), client.SubmitOptions{})
}

// allThere: every acknowledged ID is a task, and there are no other tasks.
func (b *box) allThere(url string, ids []string) {
	b.t.Helper()
	c := b.client(url)
	for _, id := range ids {
		if _, err := c.Task(b.ctx(), id); err != nil {
			b.t.Errorf("%s was acknowledged: %v", id, err)
		}
	}
	if queue, err := c.Queue(b.ctx(), client.QueueOptions{}); err != nil || queue.Depth != len(ids) {
		b.t.Errorf("%d tasks wait, %d were acknowledged: %v", queue.Depth, len(ids), err)
	}
}
