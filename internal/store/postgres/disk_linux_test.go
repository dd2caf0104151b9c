package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testdisk"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// If the server's disk is full, writes are refused, and acknowledged data is kept, whether the server only
// refuses or exits because its log does not fit.
func TestIncidentFullServerDiskAcknowledgesNothing(t *testing.T) {
	disk := testdisk.New(t, "size=128m,mode=0755")
	server := testserver.NewPostgres(t, testserver.PostgresOptions{
		Folder: disk, Settings: map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB", "shared_buffers": "16MB"},
	})
	backend, err := postgres.Open(t.Context(), postgres.Options{URL: server.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := verbs.NewShared(t.Context(), backend, verbs.Options{Patience: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	submit := func(n int) error {
		_, err := s.Submit(t.Context(), store.Submission{
			Task:    signalbox.Task{ID: fmt.Sprintf("queue-%08d", n), State: signalbox.Pending, Queue: "work", Limit: "work", CreatedAt: time.Now()},
			Request: signalbox.Request{Prompt: strings.Repeat(fmt.Sprint(n), 20_000)}, Now: time.Now(),
		})
		return err
	}
	if err := submit(0); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	testdisk.Fill(t, filler)
	acknowledged := []int{0}
	n := 1
	for ; err == nil && n < 10_000; n++ {
		if err = submit(n); err == nil {
			acknowledged = append(acknowledged, n)
		}
	}
	if code := signalbox.CodeOf(err); code != signalbox.CodeStoreFull && code != signalbox.CodeUnavailable {
		t.Fatalf("a full disk is answered with %v", err)
	}
	t.Logf("%d were acknowledged, then: %v", len(acknowledged), err)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil { // it may have exited
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; n++ {
		if err = submit(n); err == nil {
			acknowledged = append(acknowledged, n)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with room again: %v", err)
		}
	}
	for _, n := range acknowledged {
		r, err := s.Request(t.Context(), fmt.Sprintf("queue-%08d", n))
		if err != nil || r.Prompt != strings.Repeat(fmt.Sprint(n), 20_000) {
			t.Errorf("task %d was acknowledged, and is %d bytes (%v)", n, len(r.Prompt), err)
		}
	}
}
