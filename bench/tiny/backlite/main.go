// Command backlite is the smallest program with backlite and one worker: its footprint
// and start time are compared with ours.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite" // the same SQLite as ours
)

type job struct{ Prompt string }

func (job) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "job", MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second}
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	c, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 1, ReleaseAfter: time.Minute})
	if err != nil {
		return err
	}
	c.Register(backlite.NewQueue(func(context.Context, job) error { return nil }))
	if err := c.Install(); err != nil {
		return err
	}
	c.Start(context.Background())
	fmt.Println("ready")
	time.Sleep(time.Hour) // it is killed earlier
	return nil
}
