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

// LookEvery is how often FollowJobs looks whether the file has changed.
const LookEvery = 2 * time.Second

// Follow says what becomes of a file that changes.
type Follow struct {
	Log *slog.Logger
	// Now is a request to read the file at once, such as of SIGHUP; nil: none.
	Now <-chan os.Signal
	// Take takes the jobs of the file. One that fails is called again. nil: the
	// jobs are another program's.
	Take func(ctx context.Context, jobs []Job) error
	// Read is told of the whole configuration each time that it was read again,
	// by the goroutine of FollowJobs. nil: nobody wants to know.
	Read func(Config)
	// Every is how often to look; 0 is LookEvery.
	Every time.Duration
}

// FollowJobs hands the jobs of the configuration to Take, and then again
// whenever the file that they stand in has changed, until ctx ends. A file
// that is wrong changes nothing: the log says what is wrong, and where. Nor does
// one of the working folder that the user has to trust first: it is taken once
// that is done. What
// else may change while the program runs is for Read to take; the rest of the
// file needs a restart.
//
// The file is read when it stays the same from one look to the next, so that
// one that is being written is not taken for what it is to be.
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

// follower is a file that is followed.
type follower struct {
	Follow
	path    string // "": there is none
	sources Sources
	log     *slog.Logger

	jobs  []Job
	due   bool // they have not been taken
	said  string
	seen  os.FileInfo // at the last look
	taken os.FileInfo // when it was read
}

// look reads the file if it has changed, and has stopped changing.
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
	f.taken, _ = os.Stat(f.path) // before: what changes while it is read is found
	// Nothing may ever come of a pipe, and who waits for it would wait for ever.
	if f.taken != nil && f.taken.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0 {
		f.complain(Problems{{Where: f.path, Text: "it is a pipe or a device, want a file"}})
		return
	}
	src := f.sources.fixed(f.path)
	src.Ask = func(Untrusted) (bool, error) {
		f.taken = nil // read it with each look, until it is trusted
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

// fixed names the file, so that no other one is found later.
func (src Sources) fixed(path string) Sources {
	src.File, src.NoSearch = path, path == ""
	return src
}

// take hands over jobs that have not been taken.
func (f *follower) take(ctx context.Context) {
	if !f.due {
		return
	}
	if err := f.Take(ctx, slices.Clone(f.jobs)); err != nil {
		f.say(ctx, "not all jobs of the configuration were taken up; trying again", err)
		return
	}
	f.due, f.said = false, ""
}

func (f *follower) complain(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = Problems{{Where: f.path, Text: "the file is gone"}}
	}
	f.say(context.Background(), "the configuration was not taken up; the jobs stay as they were", err)
}

// say says what is wrong, once.
func (f *follower) say(ctx context.Context, what string, err error) {
	if text := err.Error(); ctx.Err() == nil && text != f.said {
		f.said = text
		f.log.Error(what, "file", f.path, "error", text)
	}
}
