package main

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

// company is what a director has beside others over one store; nil where the
// store is its alone.
type company struct {
	store  store.Shared
	clock  *peers.Clock
	peers  *peers.Peers
	ended  chan error // why this director may not go on
	cancel context.CancelFunc
	life   context.Context // of the clock, and of following the others
}

// meet prepares to be one of several directors, where the store is one for
// several. It looks at nothing but the time, and who is there.
func (s *service) meet(ctx context.Context, sealer *seal.Sealer) error {
	shared, ok := s.store.(store.Shared)
	if !ok {
		return nil
	}
	c := &company{store: shared, ended: make(chan error, 1)}
	c.life, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.others = c
	var err error
	if c.clock, err = peers.NewClock(c.life, shared, proc.SinceBoot); err != nil {
		return err
	}
	self := store.Director{
		ID: s.instance(), Run: rand.Text(), URL: s.advertised(), Version: version, Key: sealer.Digest([]byte("the key of the directors over one store")),
	}
	if err := checkKey(ctx, shared, self.ID); err != nil {
		return err
	}
	c.peers = peers.New(shared, peers.Options{
		Director: self, Now: c.clock.Now, Monotonic: proc.SinceBoot, Log: s.log, Agents: func() []string { return s.push.Names() },
		Gained: func(agents []string) { s.push.Gained(agents) }, Lost: func(agents []string) { s.push.Lost(agents) },
		Lapse: func(over bool) { s.tools.tasks.Lapse(over) }, Doubt: func() { s.tools.tasks.Recheck() }, Dead: func([]string) { s.tools.tasks.Recheck() },
		Heard: func() []store.Heard { return s.pull.Heard() }, News: func(news []store.Heard) { s.pull.News(news) },
		Superseded: func(err error) { c.ended <- fmt.Errorf("this director may not go on: %w", err) },
	})
	return nil
}

// instance is the name of this director among those over its store. A store
// that is one director's alone has one name for all time, so that a file goes
// on whatever its director is called.
func (s *service) instance() string {
	switch {
	case s.others == nil:
		return signalbox.DefaultInstance
	case s.cfg.Instance != "":
		return s.cfg.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "director"
	}
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return instanceName(host, port)
}

// instanceName makes a name of a host and a port, of what a name may have.
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

// advertised is where the other directors reach this one: the host's name where
// it listens on all addresses.
func (s *service) advertised() string {
	if s.cfg.Advertise != "" {
		return strings.TrimRight(s.cfg.Advertise, "/")
	}
	at, err := netip.ParseAddrPort(s.listener.Addr().String())
	if err != nil || !at.Addr().IsUnspecified() {
		return s.url
	}
	host, err := os.Hostname()
	if err != nil {
		return s.url
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port()))
}

// checkKey refuses a director with a key of its own beside others: each data
// folder has another one, and what one of them sealed the others could not open.
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
			return fmt.Errorf("there are other directors over this store, such as %s (%s), and %s is not set: "+
				"give all of them the same key (openssl rand -hex 32 makes one; the first director's is in the file %s of its data folder), "+
				"for each data folder has a key of its own", d.ID, d.URL, seal.EnvKey, seal.KeyFile)
		}
	}
	return nil
}

// relisted is called where the agents may be others than before.
func (c *company) relisted() {
	if c != nil && c.peers != nil {
		c.peers.Soon()
	}
}

// enter makes this director one of those over its store, and has it hear of
// what the others do. It dispatches to nothing yet.
func (s *service) enter(ctx context.Context) error {
	c := s.others
	if c == nil {
		return nil
	}
	if err := c.peers.Start(ctx); err != nil {
		return err
	}
	return s.engine.Follow(c.life, c.store, engine.Following{
		Rows:   func(e *signalbox.Entry) bool { return s.push.Wants(e) || s.pull.Wants(e) || s.tools.tasks.Wants(e) },
		Behind: func() { s.push.Behind(); s.pull.Behind() },
		Sign: func() {
			s.tools.stir()
			s.push.Remembers()
		},
	})
}

// handOver gives the agents to the other directors, if there are any, and they
// are to have what runs.
func (s *service) handOver(ctx context.Context) {
	c := s.others
	if c == nil || s.cfg.OnShutdown == "stop" || len(c.peers.Others()) == 0 {
		return
	}
	c.peers.Yield(ctx)
}

// superseded gets why this director may not go on; nothing where it is alone.
func (s *service) superseded() <-chan error {
	if s.others == nil {
		return nil
	}
	return s.others.ended
}

// leave ends what meet and enter began. What this director ran has ended.
func (c *company) leave() {
	if c == nil {
		return
	}
	if c.peers != nil {
		c.peers.Leave(context.Background())
	}
	c.cancel()
}
