package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// dirLock is an exclusive flock on a folder itself: it leaves no file behind,
// every daemon that uses the folder sees it, and it ends with its holder.
type dirLock struct{ f *os.File }

func (l *dirLock) release() { l.f.Close() }

// tryLockDir reports false when another holds the lock.
func tryLockDir(dir string) (*dirLock, bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	err = filelock.Take(f)
	if err == nil {
		return &dirLock{f}, true, nil
	}
	f.Close()
	if errors.Is(err, filelock.ErrHeld) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("lock %s: %w", dir, err)
}

// lockDirs takes the locks of all folders, in one order so that two runs
// cannot wait for each other, and gives up when ctx ends. waiting is called
// once for each folder that is in use.
func lockDirs(ctx context.Context, dirs []string, waiting func(dir string)) ([]*dirLock, error) {
	slices.Sort(dirs)
	var held []*dirLock
	for _, dir := range slices.Compact(dirs) {
		l, err := lockDir(ctx, dir, waiting)
		if err != nil {
			releaseAll(held)
			return nil, err
		}
		held = append(held, l)
	}
	return held, nil
}

func lockDir(ctx context.Context, dir string, waiting func(dir string)) (*dirLock, error) {
	said := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		l, ok, err := tryLockDir(dir)
		if err != nil || ok {
			return l, err
		}
		if !said {
			said = true
			waiting(dir)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("the folder %s is in use by another run: %w", dir, context.Cause(ctx))
		case <-t.C:
		}
	}
}

func releaseAll(locks []*dirLock) {
	for _, l := range slices.Backward(locks) {
		l.release()
	}
}
