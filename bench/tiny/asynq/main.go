// Command asynq is the smallest program with Asynq and one worker: its footprint and
// start time are compared with ours.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: os.Args[1]}, asynq.Config{Concurrency: 1, LogLevel: asynq.FatalLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc("job", func(context.Context, *asynq.Task) error { return nil })
	if err := server.Start(mux); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour) // it is killed earlier
}
