package identity

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// RefreshEvery is how old what is known may be before it is read anew.
	RefreshEvery = 5 * time.Second
	// sharedRefresh is the same where other directors make changes, and
	// UnseenFor how long one of theirs may go unseen: a request that comes when
	// what is known is older waits for a reading.
	sharedRefresh = 750 * time.Millisecond
	UnseenFor     = 1500 * time.Millisecond
	// refreshTimeout bounds a reading, and how long a request waits for one.
	refreshTimeout = 2 * time.Second
)

// looks say when the store was read. Times are since Keeper.started.
type looks struct {
	tried atomic.Int64 // when the newest reading ended
	good  atomic.Int64 // when the newest one that succeeded began
	took  atomic.Int64 // how long the newest one took
	begun atomic.Int64 // readings that began
	done  atomic.Int64 // the number of the newest that succeeded
	again turn         // held by whoever waits for a token that is not known
}

// Every is how often what is known is read anew, while someone asks.
func (k *Keeper) Every() time.Duration {
	if k.opts.Shared {
		return sharedRefresh
	}
	return RefreshEvery
}

func (k *Keeper) elapsed() time.Duration { return time.Since(k.started) }

// age is how old what is known is.
func (k *Keeper) age() time.Duration { return k.elapsed() - time.Duration(k.looks.good.Load()) }

// idle is how long ago a reading ended, whatever came of it.
func (k *Keeper) idle() time.Duration { return k.elapsed() - time.Duration(k.looks.tried.Load()) }

// refresh reads the store. The caller holds change, so that what was read
// before a change is never put in place after it.
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

// current returns what is known, and sees to it that it is not too old. A
// store that does not answer leaves what was known: then nothing else works
// either.
func (k *Keeper) current() *view {
	if k.store == nil || k.age() < k.Every() || k.idle() < k.Every() {
		return k.seen.Load()
	}
	if !k.change.try() {
		if !k.opts.Shared || k.age() < UnseenFor || !k.change.within(refreshTimeout) {
			return k.seen.Load()
		}
		if k.age() < k.Every() || k.idle() < k.Every() { // who had it has looked
			k.change.unlock()
			return k.seen.Load()
		}
	}
	k.look()
	return k.seen.Load()
}

// look reads the store and tells who wants to know. The caller holds change,
// which is given back.
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

// Refresh looks at the store anew if what is known is old.
func (k *Keeper) Refresh() { k.current() }

// A token that is not known may have been made by another director a moment
// ago: whoever logs in at one of them is sent to another with the next request.
// So the store is read once more before it is refused. What anybody can bring
// about so is bounded: all who wait share one reading, and it is made seldom
// where it takes long.
const (
	unknownRest  = 100 * time.Millisecond // least time from a reading to the next
	unknownShare = 20                     // how much longer than a reading it is
	unknownWait  = 2 * time.Second        // how long a request waits for its turn
)

// errUnknown is what the bearer of a token is told that is not known here,
// where it cannot be found out whether it is known to others.
var errUnknown = signalbox.Errorf(signalbox.CodeUnavailable,
	"the store does not answer, and the token is not one that was known before: whether it is in force cannot be told now")

// credential returns the one with this id, nil where there is none; also one
// that another director made a moment ago.
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

// readAfter sees to it that there is a reading later than the one with that
// number, and reports whether there is.
func (k *Keeper) readAfter(number int64) bool {
	there := func() bool { return k.looks.done.Load() > number }
	if there() {
		return true
	}
	if !k.looks.again.within(unknownWait) {
		return false
	}
	defer k.looks.again.unlock()
	if there() { // by one who waited before
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

// turn is a lock that one can try for a while.
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
