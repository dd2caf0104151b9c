package redis

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Inspect says what the server at a store's address promises, and which schema
// the store in it has (0: there is none yet). It refuses the servers that Open
// refuses, but for rights that only a write would show, and changes nothing.
func Inspect(ctx context.Context, url string) (store.Info, error) {
	g := &backend{log: slog.New(slog.DiscardHandler), changed: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
	if err := g.parse(url); err != nil {
		return store.Info{}, err
	}
	g.closing, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.connect(ctx); err != nil {
		g.stop()
		return store.Info{}, err
	}
	defer func() { _ = g.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := g.clients.Load().writer.Dedicated(func(d rueidis.DedicatedClient) error {
		text, err := d.Do(ctx, d.B().Hget().Key(g.prefix+"head").Field("schema").Build()).ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return refuse(explain(g.address, err), err)
		}
		g.info = store.Info{Kind: "redis"}
		g.info.Schema, _ = strconv.Atoi(text)
		if text, err = d.Do(ctx, d.B().Arbitrary("INFO").Build()).ToString(); err != nil {
			return refuse(explain(g.address, err), err)
		}
		said := informed(text)
		if err := g.suits(said); err != nil {
			return err
		}
		g.grade(ctx, d, said)
		return nil
	})
	return g.info, err
}
