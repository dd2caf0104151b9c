package director

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/peers"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// cluster is the state of a director that shares its store with others; nil if it has
// the store alone.
type cluster struct {
	store  store.Shared
	clock  *peers.Clock
	peers  *peers.Peers
	ended  chan error      // receives why this director may not go on
	follow context.Context // context of following the other directors
}

// newCluster prepares to share a store with other directors. It reads the time and the
// list of directors.
func (d *Director) newCluster(ctx context.Context, shared store.Shared, sealer *seal.Sealer) (*cluster, error) {
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.opened.Defer(cancel)
	c := &cluster{store: shared, ended: make(chan error, 1), follow: follow}
	var err error
	if c.clock, err = peers.NewClock(follow, shared, proc.SinceBoot); err != nil {
		return nil, err
	}
	self := store.Director{
		ID: d.instance(), Run: rand.Text(), URL: d.advertised(), Version: d.version, Key: sealer.Digest([]byte("the key of the directors over one store")),
	}
	if err := checkKey(ctx, shared, self.ID); err != nil {
		return nil, err
	}
	c.peers = peers.New(shared, peers.Options{
		Director: self, Now: c.clock.Now, Monotonic: proc.SinceBoot, Log: d.Log, Agents: func() []string { return d.push.Names() },
		Gained: func(agents []string) { d.push.Gained(agents) }, Lost: func(agents []string) { d.push.Lost(agents) },
		Lapse: func(over bool) { d.tools.Tasks.Lapse(over) }, HoldingsLost: func() { d.tools.Tasks.RecheckOwnership() }, Dead: func([]string) { d.tools.Tasks.RecheckOwnership() },
		Heard: func() []store.Heard { return d.pull.Heard() }, News: func(news []store.Heard) { d.pull.HeardElsewhere(news) },
		Superseded: func(err error) { c.ended <- fmt.Errorf("this director may not go on: %w", err) },
	})
	d.opened.Defer(func() { c.peers.Leave(context.Background()) }) // by then everything that this director ran has ended
	return c, nil
}

// instance is the name of this director among those that share its store. If it has the
// store alone, the name is always the same, so that a database file can be moved.
func (d *Director) instance() string {
	if _, several := d.Store.(store.Shared); !several {
		return signalbox.DefaultInstance
	}
	if d.Config.Instance != "" {
		return d.Config.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "director"
	}
	_, port, _ := net.SplitHostPort(d.listener.Addr().String())
	return instanceName(host, port)
}

// instanceName makes a valid name from a host and a port.
func instanceName(host, port string) string {
	const most = 64
	host = strings.Map(func(r rune) rune {
		if signalbox.ValidName("a" + string(r)) {
			return r
		}
		return '-'
	}, host)
	host = strings.Trim(host[:min(len(host), most-1-len(port))], "-._")
	name := host + "-" + port
	if !signalbox.ValidName(name) {
		return "director-" + port
	}
	return name
}

// advertised is the URL at which other directors reach this one: with the host's name if
// it listens on all addresses.
func (d *Director) advertised() string {
	if d.Config.Advertise != "" {
		return strings.TrimRight(d.Config.Advertise, "/")
	}
	at, err := netip.ParseAddrPort(d.listener.Addr().String())
	if err != nil || !at.Addr().IsUnspecified() {
		return d.URL
	}
	host, err := os.Hostname()
	if err != nil {
		return d.URL
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port()))
}

// checkKey refuses to join other directors with the key of the data folder: each folder
// has a different key, and no director could decrypt what another has encrypted.
func checkKey(ctx context.Context, s store.Shared, instance string) error {
	if os.Getenv(seal.EnvKey) != "" {
		return nil
	}
	all, err := s.Directors(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.ID != instance {
			return fmt.Errorf("other directors share this store, such as %s (%s), but %s is not set: "+
				"give all of them the same key (openssl rand -hex 32 makes one; the first director's is in the file %s of its data folder), "+
				"for each data folder has a key of its own", d.ID, d.URL, seal.EnvKey, seal.KeyFile)
		}
	}
	return nil
}

// relisted is called when the set of agents may have changed.
func (c *cluster) relisted() {
	if c != nil {
		c.peers.Soon()
	}
}

// joinCluster makes this director one of those that share its store, and follows the
// others. It dispatches nothing yet.
func (d *Director) joinCluster(ctx context.Context) error {
	c := d.cluster
	if c == nil {
		return nil
	}
	if err := c.peers.Start(ctx); err != nil {
		return err
	}
	return d.Engine.Follow(c.follow, c.store, engine.FollowOptions{
		NeedsRow: func(e *signalbox.Entry) bool {
			return d.push.NeedsRow(e) || d.pull.NeedsRow(e) || d.tools.Tasks.NeedsRow(e)
		},
		OnGap: func() { d.push.Resync(); d.pull.Resync() },
		OnPoll: func() {
			d.tools.Wake()
			d.push.CheckGeneration()
		},
	})
}

// handOver passes the agents, with their running tasks, to the other directors, if there
// are any.
func (c *cluster) handOver(ctx context.Context) {
	if c != nil && len(c.peers.Others()) > 0 {
		c.peers.Yield(ctx)
	}
}

// superseded receives why this director may not go on.
func (c *cluster) superseded() <-chan error {
	if c == nil {
		return nil
	}
	return c.ended
}
