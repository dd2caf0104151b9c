package redis_test

import (
	"context"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Inspecting a server creates no store, finds an existing one, and reports how durable the server is.
func TestInspectChangesNothing(t *testing.T) {
	url := testserver.Redis(t)
	for _, opened := range []bool{false, true} {
		if opened {
			g, err := redis.Open(context.Background(), redis.Options{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Close() })
		}
		info, err := redis.Inspect(t.Context(), url)
		if err != nil || info.Kind != "redis" || info.Grade != store.GradeDisk || (info.Schema > 0) != opened {
			t.Errorf("a store is there: %t, and %+v, %v", opened, info, err)
		}
	}
	weak := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"appendfsync everysec"}})
	if info, err := redis.Inspect(t.Context(), weak.URL()); err != nil || info.Grade != store.GradeWeak || !strings.Contains(info.Durability, "everysec") {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := redis.Inspect(t.Context(), "redis://:swordfish@127.0.0.1:1"); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("%v", err)
	}
}
