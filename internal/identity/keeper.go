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
	// Shared says that other directors change the store too: what they change
	// is seen within UnseenFor, and a token that is not known is looked for
	// before it is refused.
	Shared bool
}

// Keeper knows the tokens and users. Its methods are safe for concurrent use.
type Keeper struct {
	store  Store // nil: there is the static token at most
	opts   Options
	static [sha256.Size]byte
	// selector names the static token in proofs of connections; nobodys is a key
	// that no token has.
	selector string
	nobodys  handshake.Key
	hashing  chan struct{} // hashes of passwords that are made at once
	waiting  atomic.Int64  // logins that wait for one
	backoff  backoff
	links    links
	devices  [sha256.Size]byte // proves the secrets of devices
	started  time.Time
	nobody   string // hash of a password that nobody has

	change turn // held by whoever changes or reads the store
	looks  looks
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

// now is the Keeper's clock as the store keeps times.
func (k *Keeper) now() time.Time { return k.opts.Now().UTC().Truncate(time.Millisecond) }

// alter makes a change of the store, and makes it count at once.
func (k *Keeper) alter(ctx context.Context, change func(v *view) error) error {
	if k.store == nil {
		return signalbox.Errorf(signalbox.CodeUnsupported, "this director keeps no tokens or users")
	}
	k.change.lock()
	err := k.alterLocked(ctx, change)
	k.change.unlock()
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
