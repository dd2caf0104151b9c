package postgres_test

import (
	"context"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Random histories must give the same results as on the reference.
func TestCompareWithMemory(t *testing.T) {
	database := testserver.Postgres(t)
	soak.Histories(t, 3, 300)
	storetest.Compare(t,
		func(*testing.T) store.Store { return model.New(model.Options{}) },
		func(t *testing.T) store.Store { return open(t, schema(database)) })
}

func TestFullOfSchedules(t *testing.T) {
	s := open(t, testserver.Postgres(t))
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		var all errgroup.Group
		for part := range slices.Chunk(rows, 1+len(rows)/1000) {
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
