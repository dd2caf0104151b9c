package identity

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// RefreshEvery is the maximum age of the view before it is read again.
	RefreshEvery = 5 * time.Second
	// sharedRefresh is the same if other directors make changes. MaxStaleness is how long
	// their changes may go unseen: if the view is older, a request waits until it
	// is read again.
	sharedRefresh = 750 * time.Millisecond
	MaxStaleness  = 1500 * time.Millisecond
	// refreshTimeout limits a read, and how long a request waits for one.
	refreshTimeout = 2 * time.Second
)

// looks records when the store was read. Times are since Keeper.started.
type looks struct {
	tried atomic.Int64 // end of the newest read
	good  atomic.Int64 // start of the newest successful read
	took  atomic.Int64 // duration of the newest read
	begun atomic.Int64 // number of reads that were started
	done  atomic.Int64 // number of the newest successful read
	again turn         // held while a read for an unknown token waits or runs
}

// Every is the interval at which the view is read again while there are requests.
func (k *Keeper) Every() time.Duration {
	if k.opts.Shared {
		return sharedRefresh
	}
	return RefreshEvery
}

func (k *Keeper) elapsed() time.Duration { return time.Since(k.started) }

// age is the age of the view.
func (k *Keeper) age() time.Duration { return k.elapsed() - time.Duration(k.looks.good.Load()) }

// idle is the time since a read ended, with or without success.
func (k *Keeper) idle() time.Duration { return k.elapsed() - time.Duration(k.looks.tried.Load()) }

// refresh reads the store into a new view. The caller holds change, so that a view from
// before a change never replaces a newer one.
func (k *Keeper) refresh(ctx context.Context) error {
	begin, number := k.elapsed(), k.looks.begun.Add(1)
	tokens, users, err := k.readAll(ctx)
	end := k.elapsed()
	k.looks.took.Store(int64(end - begin))
	k.looks.tried.Store(int64(end))
	if err != nil {
		return err
	}
	k.seen.Store(newView(tokens, users))
	k.looks.good.Store(int64(begin))
	k.looks.done.Store(number)
	return nil
}

func (k *Keeper) readAll(ctx context.Context) (tokens []signalbox.Token, users []signalbox.User, err error) {
	if k.store == nil {
		return nil, nil, nil
	}
	if tokens, err = k.store.Tokens(ctx); err == nil {
		users, err = k.store.Users(ctx)
	}
	return tokens, users, err
}

// current returns the view, and reads it again if it is too old. If the store does not
// answer, the old view stays: nothing else works then either.
func (k *Keeper) current() *view {
	if k.store == nil || k.age() < k.Every() || k.idle() < k.Every() {
		return k.seen.Load()
	}
	if !k.change.try() {
		if !k.opts.Shared || k.age() < MaxStaleness || !k.change.within(refreshTimeout) {
			return k.seen.Load()
		}
		if k.age() < k.Every() || k.idle() < k.Every() { // the previous holder has read it
			k.change.unlock()
			return k.seen.Load()
		}
	}
	k.look()
	return k.seen.Load()
}

// look reads the store and calls the listeners. The caller holds change; look unlocks it.
func (k *Keeper) look() {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	err := k.refresh(ctx)
	cancel()
	k.change.unlock()
	if err != nil {
		k.opts.Log.Error("tokens and users not read", "error", err)
		return
	}
	k.tell()
}

// Refresh reads the store again if the view is old.
func (k *Keeper) Refresh() { k.current() }

// An unknown token may have been made by another director a moment ago: a client may log
// in at one director and send its next request to another. So the store is read once more
// before the token is refused. The load that strangers can cause this way is limited: all
// waiting requests share one read, and slow reads are made less often.
const (
	unknownRest  = 100 * time.Millisecond // minimum time between two reads
	unknownShare = 20                     // the same as a multiple of the duration of a read
	unknownWait  = 2 * time.Second        // maximum wait of a request at each step
)

// errUnknown is the error for an unknown token while the store cannot be read to check
// for it.
var errUnknown = signalbox.Errorf(signalbox.CodeUnavailable,
	"the store does not answer, so this token, which is not known yet, cannot be checked now")

// credential returns the credential with an id, nil if there is none. It finds credentials
// that another director has just made.
func (k *Keeper) credential(id string) (*credential, error) {
	asked := k.looks.begun.Load()
	c := k.current().tokens[id]
	if c != nil || id == "" || !k.opts.Shared || k.store == nil {
		return c, nil
	}
	if !k.readAfter(asked) {
		return nil, errUnknown
	}
	return k.seen.Load().tokens[id], nil
}

// readAfter waits for a successful read that started after the one with that number, or
// makes one, and reports whether there is one.
func (k *Keeper) readAfter(number int64) bool {
	there := func() bool { return k.looks.done.Load() > number }
	if there() {
		return true
	}
	if !k.looks.again.within(unknownWait) {
		return false
	}
	defer k.looks.again.unlock()
	if there() { // read by the previous holder
		return true
	}
	if pause := max(unknownRest, unknownShare*time.Duration(k.looks.took.Load())) - k.idle(); pause > 0 {
		time.Sleep(min(pause, unknownWait))
	}
	if !k.change.within(unknownWait) {
		return false
	}
	if there() {
		k.change.unlock()
		return true
	}
	k.look()
	return there()
}

// turn is a lock with a timeout.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) lock() { t <- struct{}{} }

func (t turn) unlock() { <-t }

func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) within(d time.Duration) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-time.After(d):
		return false
	}
}
