package redis_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// cluster starts a cluster of two nodes, each with half of the slots.
func cluster(t *testing.T) (one, two *testserver.RedisServer) {
	t.Helper()
	o := testserver.RedisOptions{Settings: []string{"cluster-enabled yes", "cluster-node-timeout 15000"}}
	one, two = testserver.NewRedis(t, o), testserver.NewRedis(t, o)
	command(t, one, "CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	command(t, two, "CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	_, port, _ := strings.Cut(two.Addr(), ":")
	command(t, one, "CLUSTER", "MEET", "127.0.0.1", port)
	testkit.Wait(t, "the cluster is complete", func() bool { return whole(t, one) && whole(t, two) })
	return one, two
}

func whole(t *testing.T, s *testserver.RedisServer) bool {
	info := command(t, s, "CLUSTER", "INFO")
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_assigned:16384")
}

// TestCluster opens stores by either node: all keys of a store have one hash tag, and the client finds its
// node.
func TestCluster(t *testing.T) {
	one, two := cluster(t)
	var known sync.Map
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store {
		url, _ := known.LoadOrStore(filepath.Clean(dir), one.Prefix())
		return newStore(t, url.(string))
	})
	for _, prefix := range []string{"a", "b", "c", "d"} {
		left, right := open(t, one.URL()+"?prefix="+prefix), open(t, two.URL()+"?prefix="+prefix)
		if err := left.Commit(context.Background(), batchOf("w", 1, verbs.Counters{}, submitted(1))); err != nil {
			t.Fatal(err)
		}
		if found, err := right.Task(context.Background(), submitted(1).ID); err != nil || found == nil {
			t.Errorf("prefix %s by the other node: %v, %v", prefix, found, err)
		}
		// Signals come from the node that has the keys.
		select {
		case <-right.Changed():
		case <-time.After(time.Minute):
			t.Errorf("prefix %s: no sign", prefix)
		}
	}
}
