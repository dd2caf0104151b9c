package redis_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// newStore opens a store over a backend; the caller closes it.
func newStore(t testing.TB, url string) *verbs.Shared {
	t.Helper()
	g, err := redis.Open(context.Background(), redis.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	s, err := verbs.NewShared(context.Background(), g, verbs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newStore(t, testserver.Redis(t)) })
}

// A folder is mapped to a prefix.
func TestDurable(t *testing.T) {
	var known sync.Map
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store {
		url, _ := known.LoadOrStore(filepath.Clean(dir), testserver.Redis(t))
		return newStore(t, url.(string))
	})
}

// storetest/stores compares all stores with each other; here a few histories suffice, and -rapid.checks plays
// more.
func TestHistoriesAreEqualToMemory(t *testing.T) {
	soak.Histories(t, 4, 4)
	storetest.Compare(t,
		func(*testing.T) store.Store { return model.New(model.Options{ID: "model"}) },
		func(t *testing.T) store.Store { return newStore(t, testserver.Redis(t)) },
	)
}

func TestScheduleLimit(t *testing.T) {
	s := newStore(t, testserver.Redis(t))
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		var all errgroup.Group
		for part := range slices.Chunk(rows, 1+len(rows)/200) {
			all.Go(func() error {
				for _, row := range part {
					if _, err := s.PutSchedule(context.Background(), row, nil, signalbox.Entry{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return all.Wait()
	})
}
