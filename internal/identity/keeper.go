package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Store is the part of store.Store for tokens and users.
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
	// Static is the token of the configuration. It has every scope, and
	// closes the director.
	Static string
	Now    func() time.Time
	Random io.Reader // for ids, secrets and salts
	Log    *slog.Logger
	Cost   Cost // cost of a password hash
	// Shared says that other directors change the store too: their changes are
	// seen within MaxStaleness, and the store is read before an unknown token is
	// refused.
	Shared bool
}

// Keeper holds the tokens and users. Its methods are safe for concurrent use.
type Keeper struct {
	store  Store // nil: only the static token, if any
	opts   Options
	static [sha256.Size]byte
	// selector identifies the static token in connection proofs; nobodys is a key that
	// belongs to no token.
	selector string
	nobodys  handshake.Key
	hashing  chan struct{} // limits concurrent password hashes
	waiting  atomic.Int64  // logins that wait for a hash
	backoff  backoff
	links    links
	devices  [sha256.Size]byte // MAC key of device secrets
	started  time.Time
	nobody   string // hash that no password matches

	change turn // held while the store is changed or read
	looks  looks
	seen   atomic.Pointer[view]
	used   sync.Map // id of a token → *atomic.Int64, Unix milliseconds

	watch sync.Mutex
	told  []func()
}

// New returns a Keeper with what the store has. Without a store no tokens and users can
// be created; there is only the static token, if one is set.
func New(ctx context.Context, s Store, o Options) (*Keeper, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Random = cmp.Or(o.Random, rand.Reader)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost
	}
	k := &Keeper{
		store: s, opts: o, static: sha256.Sum256([]byte(o.Static)), selector: handshake.Selector(o.Static), nobodys: handshake.KeyOf(rand.Text()), hashing: make(chan struct{}, maxHashes), started: time.Now(),
		nobody: o.Cost.nobody(),
		change: newTurn(), looks: looks{again: newTurn()},
	}
	k.backoff.init()
	if _, err := io.ReadFull(rand.Reader, k.devices[:]); err != nil {
		return nil, err
	}
	k.change.lock()
	defer k.change.unlock()
	return k, k.refresh(ctx)
}

// now is the Keeper's clock, with the precision of the store.
func (k *Keeper) now() time.Time { return k.opts.Now().UTC().Truncate(time.Millisecond) }

// alter changes the store, and makes the change take effect at once.
func (k *Keeper) alter(ctx context.Context, change func(v *view) error) error {
	if k.store == nil {
		return signalbox.Errorf(signalbox.CodeUnsupported, "this director stores no tokens or users")
	}
	k.change.lock()
	err := k.alterLocked(ctx, change)
	k.change.unlock()
	k.tell()
	return err
}

func (k *Keeper) alterLocked(ctx context.Context, change func(v *view) error) error {
	if err := k.refresh(ctx); err != nil { // for changes of other directors
		return err
	}
	err := change(k.seen.Load())
	// Also after an error: the change may have been stored in part.
	if again := k.refresh(context.WithoutCancel(ctx)); err == nil {
		err = again
	}
	return err
}

// OnChange registers f, which is called whenever tokens or users may have changed.
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

// Open reports whether the director requires no token: there is no static token and no
// credential with scope admin. An expired credential still counts: a director must not
// open by the passing of time.
func (k *Keeper) Open() bool { return k.opts.Static == "" && !k.current().admin }

// Static reports whether there is a static token.
func (k *Keeper) Static() bool { return k.opts.Static != "" }
