package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// The version of the program under test, and those to which it is upgraded.
// They have the same length, so that one build is enough: the others are copies
// with another version number.
const (
	olderVersion = "901.4.0"
	newerVersion = "901.4.1"
	minorVersion = "901.5.0"
)

// releases are the program, and copies of it as two later releases.
func (b *box) releases() (older, newer, minor string) {
	b.t.Helper()
	path := func(version string) string { return filepath.Join(b.root, "signalbox-"+version) }
	program, err := os.ReadFile(binary)
	if err != nil {
		b.t.Fatal(err)
	}
	other := func(version string) string {
		text := bytes.ReplaceAll(program, []byte(olderVersion), []byte(version))
		// If another test forks at the same time, its child would briefly hold the
		// file open for writing, and such a file cannot be executed.
		syscall.ForkLock.RLock()
		err := os.WriteFile(path(version), text, 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			b.t.Fatal(err)
		}
		if got := launchProgram(b.t, path(version), b.work, b.environ(), "version"); got.exits() != 0 || !strings.Contains(got.out.text(), version) {
			b.t.Fatalf("the copy that is to be %s says: %s", version, got.out.text())
		}
		return path(version)
	}
	return binary, other(newerVersion), other(minorVersion)
}

// A rolling upgrade: while tasks are submitted, the directors are replaced
// one by one by the next patch release. The next minor release may not join
// while an old director is alive.
func TestRollingUpgradeLosesNothing(t *testing.T) {
	b := newBox(t)
	b.vars["SIGNALBOX_STORE"] = testserver.NewPostgres(t, testserver.PostgresOptions{}).Database(t)
	b.vars["SIGNALBOX_SECRET_KEY"] = testKey
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1000"
	older, newer, minor := b.releases()
	director := func(program, name, addr string) *process {
		return launchProgram(t, program, b.work, b.environ(), "director", "--addr", addr, "--instance", name, "--data", filepath.Join(b.root, name))
	}
	names := []string{"one", "two", "three"}
	addrs := []string{freePort(t), freePort(t), freePort(t)}
	var directors []*process
	for i := range names {
		p := director(older, names[i], addrs[i])
		p.prints("http://")
		directors = append(directors, p)
	}
	refused := director(minor, "four", freePort(t))
	if refused.exits() == 0 || !strings.Contains(refused.err.text(), "only versions of one minor run side by side") {
		t.Errorf("a director of the next minor said: %s", refused.err.text())
	}
	b.vars["SIGNALBOX_TOKEN"], b.vars["SIGNALBOX_PROOF"] = b.token(), "off" // the balancer is not a director and cannot prove itself
	front := newBalancer(t, addrs...)
	for _, name := range []string{"coder-1", "coder-2"} {
		b.agent(name, front.url)
	}
	c := b.client(front.url)
	stop := make(chan struct{})
	var submitting sync.WaitGroup
	var ids []string
	submitting.Go(func() { ids = b.submitUntil(c, stop) })
	for i := range names {
		directors[i].stop()
		p := director(newer, names[i], addrs[i])
		p.prints("http://")
		directors[i] = p
		b.until("it takes its share", func() bool {
			list, err := c.Directors(b.ctx())
			return err == nil && alive(list, newerVersion) > i
		})
	}
	close(stop)
	submitting.Wait()
	ran := map[string]int{}
	for _, id := range ids {
		b.completed(c, id)
	}
	for _, l := range executions(t, b.execLog()) {
		if l.Event == "start" {
			ran[l.QueueID]++
		}
	}
	for _, id := range ids {
		if ran[id] != 1 {
			t.Errorf("%s was executed %d times", id, ran[id])
		}
	}
	t.Logf("%d tasks", len(ids))
	if len(ids) < 10 {
		t.Errorf("only %d tasks flowed", len(ids))
	}
}

func alive(list []api.Director, version string) int {
	n := 0
	for _, d := range list {
		if d.Alive && d.Version == version {
			n++
		}
	}
	return n
}

// submitUntil submits one task after another, each until it is acknowledged.
func (b *box) submitUntil(c *client.Client, stop <-chan struct{}) (ids []string) {
	for {
		key := client.NewIdempotencyKey()
		got, err := c.Submit(b.ctx(), prompt("sleep 10ms"), client.SubmitOptions{IdempotencyKey: key})
		for awayFor(err) {
			got, err = c.Submit(b.ctx(), prompt("sleep 10ms"), client.SubmitOptions{IdempotencyKey: key})
		}
		if err != nil {
			b.t.Errorf("submit: %v", err)
			return ids
		}
		ids = append(ids, got.QueueID)
		select {
		case <-stop:
			return ids
		case <-time.After(20 * time.Millisecond):
		}
	}
}
