package config

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"
)

// LookEvery is how often FollowJobs checks whether the file has changed.
const LookEvery = 2 * time.Second

// Follow configures FollowJobs.
type Follow struct {
	Log *slog.Logger
	// Now requests that the file is read at once, for example on SIGHUP; nil: no
	// requests.
	Now <-chan os.Signal
	// Take takes the jobs of the file. If it fails, it is called again. nil:
	// another program handles the jobs.
	Take func(ctx context.Context, jobs []Job) error
	// Read is called with the whole configuration each time the file was read
	// again, in the goroutine of FollowJobs. nil: not called.
	Read func(Config)
	// Every is the interval of checks; 0 is LookEvery.
	Every time.Duration
}

// FollowJobs passes the jobs of the configuration to Take, and again whenever
// their file has changed, until ctx ends. An invalid file changes nothing: the
// log says what is wrong, and where. Neither does a file of the working folder
// that the user has not trusted yet: it is read once that has happened. Read
// handles other settings that may change while the program runs; the rest of the
// file needs a restart.
//
// The file is read when it is unchanged between two checks, so that a file that
// is still being written is not read.
func (c *Config) FollowJobs(ctx context.Context, o Follow) {
	if o.Every <= 0 {
		o.Every = LookEvery
	}
	f := follower{Follow: o, path: c.File, sources: c.sources, jobs: c.Jobs, log: o.Log, due: o.Take != nil}
	f.taken, f.seen = c.read, c.read
	tick := time.Tick(f.Every)
	for {
		f.take(ctx)
		select {
		case <-ctx.Done():
			return
		case <-o.Now:
			f.read("asked for")
		case <-tick:
			f.look()
		}
	}
}

// follower follows one file.
type follower struct {
	Follow
	path    string // "": there is none
	sources Sources
	log     *slog.Logger

	jobs  []Job
	due   bool // the jobs were not taken yet
	said  string
	seen  os.FileInfo // at the last check
	taken os.FileInfo // when it was read
}

// look reads the file if it has changed and is now stable.
func (f *follower) look() {
	if f.path == "" {
		return
	}
	info, err := os.Stat(f.path)
	if err != nil {
		f.complain(err)
		return
	}
	settled := same(info, f.seen)
	f.seen = info
	if settled && !same(info, f.taken) {
		f.read("it has changed")
	}
}

func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// read reads the file.
func (f *follower) read(why string) {
	if f.path == "" && f.Read == nil {
		f.log.Info("there is no configuration file to read again")
		return
	}
	f.taken, _ = os.Stat(f.path) // before reading, so that a change during the read is noticed
	// A pipe may never have data, and reading it would block for ever.
	if f.taken != nil && f.taken.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0 {
		f.complain(Problems{{Where: f.path, Text: "it is a pipe or a device, want a file"}})
		return
	}
	src := f.sources.fixed(f.path)
	src.Ask = func(Untrusted) (bool, error) {
		f.taken = nil // check again each time, until the file is trusted
		return false, nil
	}
	fresh, err := Load(src)
	if err == nil && len(fresh.Jobs) == 0 && len(f.jobs) > 0 && fresh.fromFile("jobs") == "" {
		err = Problems{{Where: f.path, Key: "jobs", Text: "it is gone: write jobs: [] where all of them are to end"}}
	}
	if err != nil {
		f.complain(err)
		return
	}
	f.jobs, f.due, f.said = fresh.Jobs, f.Take != nil, ""
	if f.Read != nil {
		f.Read(fresh)
	}
	f.log.Info("configuration read again", "file", f.path, "because", why, "jobs", len(f.jobs))
}

// fixed names the file explicitly, so that no other one is found later.
func (src Sources) fixed(path string) Sources {
	src.File, src.NoSearch = path, path == ""
	return src
}

// take passes on jobs that were not taken yet.
func (f *follower) take(ctx context.Context) {
	if !f.due {
		return
	}
	if err := f.Take(ctx, slices.Clone(f.jobs)); err != nil {
		f.say(ctx, "not all jobs of the configuration were applied; retrying", err)
		return
	}
	f.due, f.said = false, ""
}

func (f *follower) complain(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = Problems{{Where: f.path, Text: "the file is gone"}}
	}
	f.say(context.Background(), "the configuration was not applied; the jobs are unchanged", err)
}

// say logs a mistake once.
func (f *follower) say(ctx context.Context, what string, err error) {
	if text := err.Error(); ctx.Err() == nil && text != f.said {
		f.said = text
		f.log.Error(what, "file", f.path, "error", text)
	}
}
