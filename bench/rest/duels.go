package rest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/tiny"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Group is idle processes.
var Group = measure.Group{Name: "idle", Duels: duels}

const (
	agents    = 1000
	schedules = 10_000
)

func duels(*measure.Bench) []*measure.Duel {
	s := &stretches{}
	bare := s.side("a director with nothing", func(ctx context.Context, b *measure.Bench) (*watched, error) {
		d, err := start(ctx, b, "nothing")
		if err != nil {
			return nil, err
		}
		return &watched{pid: d.PID()}, nil
	})
	planned := s.side("Signalbox", func(ctx context.Context, b *measure.Bench) (*watched, error) {
		d, err := start(ctx, b, "schedules")
		if err != nil {
			return nil, err
		}
		return &watched{pid: d.PID()}, fill(ctx, d.URL, b.Scale(schedules))
	})
	crowded := s.side("Signalbox", crowdOf)
	peers := []*measure.Side{
		bare, peer(s, "River and one worker", "river", func(b *measure.Bench) string {
			return testserver.NewPostgres(b, testserver.PostgresOptions{}).Database(b)
		}),
		peer(s, "Asynq and one worker", "asynq", func(b *measure.Bench) string { return testserver.NewRedis(b, testserver.RedisOptions{}).Addr() }),
		peer(s, "backlite and one worker", "backlite", func(b *measure.Bench) string { return filepath.Join(b.Dir, "tiny.db") }),
	}
	return []*measure.Duel{
		{Name: "idle/schedules", Ours: planned, Peers: []*measure.Side{bare}, Rows: []measure.Row{
			{ID: "cpu", Key: share, Title: "processor time of a director with 10,000 schedules, none due", Unit: "%", Lower: true, Target: measure.Target{AtMost: 1}},
			{ID: "memory", Key: load.RSS, Title: "its memory (RSS)", Unit: "MB", Lower: true, Detail: true},
		}},
		{Name: "idle/agents", Ours: crowded, Peers: peers, Limit: s.side("a bare net/http server that answers the same heartbeats", constant), Rows: []measure.Row{
			{ID: "cpu", Key: share, Title: "processor time of an idle director with 1,000 agents that send heartbeats", Unit: "%", Lower: true, Target: measure.Target{AtMost: 2}},
			{ID: "memory", Key: load.RSS, Title: "its memory (RSS)", Unit: "MB", Lower: true, Detail: true},
			{ID: "beats", Key: beats, Title: "heartbeats received per minute", Detail: true},
			{ID: "asked", Key: asked, Title: "requests to agents per minute", Lower: true, Detail: true},
		}},
		{Name: "idle/live", Ours: live(), Rows: []measure.Row{
			{ID: "cpu", Key: viewed, Title: "processor time for one reader of the live stream, 1,000 idle agents", Unit: "ms/s", Lower: true, Target: measure.Target{AtMost: 0.5}},
			{ID: "sent", Key: sent, Title: "data sent for that", Unit: "kB/s", Lower: true, Detail: true},
		}},
	}
}

func start(ctx context.Context, b *measure.Bench, name string) (*director.Process, error) {
	binary, err := director.Build(ctx, b.Bin)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(b.Dir, name)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "director", "--open", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "error")
	cmd.Dir, cmd.Env = data, append(os.Environ(), "HOME="+data, "SIGNALBOX_HOME="+data)
	d, err := director.Start(cmd)
	if err == nil {
		b.Cleanup(d.Stop)
	}
	return d, err
}

// crowdOf starts a director with its agents. The first heartbeats, spread over an
// interval, belong to the start.
func crowdOf(ctx context.Context, b *measure.Bench) (*watched, error) {
	w, _, err := crowdAt(ctx, b, "agents")
	return w, err
}

// crowdAt is crowdOf with a data folder of that name; it also returns the address.
func crowdAt(ctx context.Context, b *measure.Bench, name string) (*watched, string, error) {
	d, err := start(ctx, b, name)
	if err != nil {
		return nil, "", err
	}
	c := &crowd{url: d.URL}
	b.Cleanup(c.stop)
	if err := c.start(ctx, b.Scale(agents)); err != nil {
		return nil, "", err
	}
	if !b.Quick {
		if err := sleep(ctx, c.interval()); err != nil {
			return nil, "", err
		}
	}
	return &watched{pid: d.PID(), count: func() (int64, int64) {
		if n := c.failed.Load(); n > 0 {
			panic(fmt.Sprintf("%d heartbeats failed, the last one: %s", n, c.why.Load()))
		}
		return c.beats.Load(), c.asked.Load()
	}}, d.URL, nil
}

func peer(s *stretches, name, folder string, where func(b *measure.Bench) string) *measure.Side {
	return s.side(name, func(ctx context.Context, b *measure.Bench) (*watched, error) {
		binary, err := tiny.Build(ctx, b.Bin, folder)
		if err != nil {
			return nil, err
		}
		p, err := tiny.Start(ctx, binary, where(b))
		if err != nil {
			return nil, err
		}
		b.Cleanup(p.Stop)
		return &watched{pid: p.PID()}, nil
	})
}

// Constant is the environment variable that makes this program run as a server that
// answers heartbeats with a constant, and prints its address.
const Constant = "SIGNALBOX_BENCH_CONSTANT"

// ServeConstant runs that server.
func ServeConstant() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("at http://%s\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"state":"idle","interval_seconds":30}`))
	}))
}

// constant lets the same agents send heartbeats to that server.
func constant(ctx context.Context, b *measure.Bench) (*watched, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), Constant+"=1")
	d, err := director.Start(cmd)
	if err != nil {
		return nil, err
	}
	b.Cleanup(d.Stop)
	c := &crowd{url: d.URL}
	b.Cleanup(c.stop)
	return &watched{pid: d.PID()}, c.start(ctx, b.Scale(agents))
}
