package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Store is the part of store.Store that identities are kept in.
type Store interface {
	PutToken(ctx context.Context, t signalbox.Token) error
	DeleteToken(ctx context.Context, id string) (was bool, err error)
	PutUser(ctx context.Context, u signalbox.User) error
	DeleteUser(ctx context.Context, id string) (was bool, err error)
	Tokens(ctx context.Context) ([]signalbox.Token, error)
	Users(ctx context.Context) ([]signalbox.User, error)
}

// Options configures a Keeper. Zero fields take defaults.
type Options struct {
	// Static is the token of the configuration. It has every right, and
	// closes the director.
	Static string
	Now    func() time.Time
	Random io.Reader // for ids, secrets and salts
	Log    *slog.Logger
	Cost   Cost // of a password
}

const (
	// RefreshEvery is how long a change that another director made may go
	// unseen.
	RefreshEvery = 5 * time.Second
	// refreshTimeout bounds how long a request waits for that look.
	refreshTimeout = 2 * time.Second
)

// Keeper knows the tokens and users. Its methods are safe for concurrent use.
type Keeper struct {
	store   Store // nil: there is the static token at most
	opts    Options
	static  [sha256.Size]byte
	hashing chan struct{} // hashes of passwords that are made at once
	waiting atomic.Int64  // logins that wait for one
	backoff backoff
	started time.Time
	nobody  string // hash of a password that nobody has

	change sync.Mutex // held by whoever changes or reads the store
	read   atomic.Int64
	seen   atomic.Pointer[view]
	used   sync.Map // id of a token → *atomic.Int64, Unix milliseconds

	watch sync.Mutex
	told  []func()
}

// New makes a Keeper and reads what the store has. Without a store nobody can
// be made; there is the static token then, or none.
func New(ctx context.Context, s Store, o Options) (*Keeper, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost
	}
	k := &Keeper{
		store: s, opts: o, static: sha256.Sum256([]byte(o.Static)), hashing: make(chan struct{}, maxHashes), started: time.Now(),
		nobody: o.Cost.nobody(),
	}
	k.backoff.init()
	k.change.Lock()
	defer k.change.Unlock()
	return k, k.refresh(ctx)
}

// now is the Keeper's clock as the store keeps times.
func (k *Keeper) now() time.Time { return k.opts.Now().UTC().Truncate(time.Millisecond) }

// refresh reads the store. The caller holds change, so that what was read
// before a change is never put in place after it.
func (k *Keeper) refresh(ctx context.Context) error {
	k.read.Store(int64(time.Since(k.started)))
	var tokens []signalbox.Token
	var users []signalbox.User
	if k.store != nil {
		var err error
		if tokens, err = k.store.Tokens(ctx); err != nil {
			return err
		}
		if users, err = k.store.Users(ctx); err != nil {
			return err
		}
	}
	k.seen.Store(newView(tokens, users))
	return nil
}

// current returns what is known, and sees to it that it is not too old. A
// store that does not answer leaves what was known: then nothing else works
// either.
func (k *Keeper) current() *view {
	if k.store == nil || time.Since(k.started)-time.Duration(k.read.Load()) < RefreshEvery || !k.change.TryLock() {
		return k.seen.Load()
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	err := k.refresh(ctx)
	cancel()
	k.change.Unlock()
	if err != nil {
		k.opts.Log.Error("tokens and users not read", "error", err)
	} else {
		k.tell()
	}
	return k.seen.Load()
}

// Refresh looks at the store anew if what is known is old.
func (k *Keeper) Refresh() { k.current() }

// alter makes a change of the store, and makes it count at once.
func (k *Keeper) alter(ctx context.Context, change func(v *view) error) error {
	if k.store == nil {
		return signalbox.Errorf(signalbox.CodeUnsupported, "this director keeps no tokens or users")
	}
	k.change.Lock()
	err := k.alterLocked(ctx, change)
	k.change.Unlock()
	k.tell()
	return err
}

func (k *Keeper) alterLocked(ctx context.Context, change func(v *view) error) error {
	if err := k.refresh(ctx); err != nil { // another director may have made changes
		return err
	}
	err := change(k.seen.Load())
	// Also after a failure: the change may have been made in part.
	if again := k.refresh(context.WithoutCancel(ctx)); err == nil {
		err = again
	}
	return err
}

// OnChange has f called whenever what is known may have changed.
func (k *Keeper) OnChange(f func()) {
	k.watch.Lock()
	defer k.watch.Unlock()
	k.told = append(k.told, f)
}

func (k *Keeper) tell() {
	k.watch.Lock()
	told := k.told
	k.watch.Unlock()
	for _, f := range told {
		f()
	}
}

// Open reports whether nobody is asked for a token: there is no static one and
// no credential with scope admin. One that has expired still counts: time
// alone must not open a director.
func (k *Keeper) Open() bool { return k.opts.Static == "" && !k.current().admin }

// Static reports whether there is a static token.
func (k *Keeper) Static() bool { return k.opts.Static != "" }
