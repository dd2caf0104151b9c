package rest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// fill creates schedules at different times, none of which is due within hours.
func fill(ctx context.Context, url string, count int) error {
	c, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	from := time.Now().UTC().Add(3 * time.Hour)
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(count) && failed.Load() == nil && ctx.Err() == nil; i = next.Add(1) {
				at := from.Add(time.Duration(i%1080) * time.Minute) // within the following eighteen hours
				_, err := c.CreateSchedule(ctx, api.NewSchedule{
					Name: fmt.Sprintf("job-%05d", i), Message: "sleep 1ms", CronExpression: fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()),
				})
				if err != nil {
					failed.Store(err)
				}
			}
		})
	}
	all.Wait()
	if err, ok := failed.Load().(error); ok {
		return err
	}
	return ctx.Err()
}
