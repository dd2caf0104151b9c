package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// TestIncidentReplicaIsPromoted has a Sentinel promote a replica when the primary is killed. If the replica
// lags, acknowledged data is lost and a new generation begins; otherwise everything continues.
func TestIncidentReplicaIsPromoted(t *testing.T) {
	for name, behind := range map[string]bool{"behind": true, "level": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica, url := watched(t)
			st := patientStore(t, url)
			submitTo(t, st, 1)
			level(t, primary, replica)
			if behind {
				// It can no longer connect.
				command(t, replica, "CONFIG", "SET", "masteruser", "nobody", "masterauth", "wrong")
				command(t, primary, "CLIENT", "KILL", "TYPE", "replica")
			}
			before, last := claimFrom(t, st), submitTo(t, st, 2)
			if !behind {
				level(t, primary, replica)
			}
			if err := primary.Kill(); err != nil {
				t.Fatal(err)
			}
			if behind {
				lostSince(t, st, before, last)
				return
			}
			if !renewed(t, st, before) || claimFrom(t, st).ID != last.ID || st.Generation() != 1 {
				t.Errorf("something was lost, in generation %d", st.Generation())
			}
		})
	}
}

// patientStore is a store whose patience exceeds a failover on a busy machine.
func patientStore(t *testing.T, url string) *verbs.Shared {
	t.Helper()
	g, err := redis.Open(context.Background(), redis.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	st, err := verbs.NewShared(context.Background(), g, verbs.Options{Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// watched starts a primary, a replica and a Sentinel for both, and returns the URL by which the Sentinel
// names the primary.
func watched(t *testing.T) (primary, replica *testserver.RedisServer, url string) {
	t.Helper()
	primary = testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"repl-diskless-sync-delay 0"}})
	replica = testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{fmt.Sprintf("replicaof 127.0.0.1 %d", primary.Port)}})
	level(t, primary, replica)
	at := sentinel(t, primary)
	testkit.Wait(t, "the Sentinel knows the replica", func() bool {
		said, err := at.Command("INFO", "sentinel")
		return err == nil && strings.Contains(said, "status=ok") && strings.Contains(said, "slaves=1")
	})
	return primary, replica, "redis://" + at.Addr() + "?master_set=box"
}

// sentinel starts a Sentinel that considers a server down after two seconds.
func sentinel(t *testing.T, primary *testserver.RedisServer) *testserver.RedisServer {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if bin, err = exec.LookPath("valkey-server"); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := &testserver.RedisServer{Port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	lines := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nsentinel monitor box 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds box 2000\nsentinel failover-timeout box 10000\n", at.Port, dir, primary.Port)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var killed *exec.ExitError
		if err := errors.Join(cmd.Process.Kill(), cmd.Wait()); err != nil && !errors.As(err, &killed) {
			t.Errorf("stop the Sentinel: %v", err)
		}
	})
	return at
}

// level waits until the replica has all data of the primary.
func level(t *testing.T, primary, replica *testserver.RedisServer) {
	t.Helper()
	testkit.Wait(t, "the replica has all", func() bool {
		one, other := replication(t, primary), replication(t, replica)
		return other["master_link_status"] == "up" && other["slave_repl_offset"] == one["master_repl_offset"]
	})
}

func replication(t *testing.T, s *testserver.RedisServer) map[string]string {
	t.Helper()
	said := map[string]string{}
	for line := range strings.Lines(command(t, s, "INFO", "replication")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			said[name] = value
		}
	}
	return said
}
