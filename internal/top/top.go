package top

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Kinds of events of the stream, see api.Live.
const (
	kindSnapshot = "snapshot"
	kindChange   = "change"
	kindResync   = "resync"
	kindBeat     = "beat"
)

// Event is one event of the live stream. Of a beat only Revision, At and Epoch
// of Live are set.
type Event struct {
	Kind string // snapshot, change, resync or beat
	Live api.Live
}

// Director is what the view asks of the director; *client.Client is one.
type Director interface {
	Task(ctx context.Context, id string) (api.Task, error)
	Why(ctx context.Context, id string) (api.Why, error)
	FollowOutput(ctx context.Context, id string, after int64, each func(api.Output) error) error
	Cancel(ctx context.Context, id string) (api.Cancelled, error)
	Retry(ctx context.Context, id string, edit api.RetryRequest, opts client.SubmitOptions) (api.SubmitResponse, error)
	Pause(ctx context.Context, req api.PauseRequest) (api.Paused, error)
	Resume(ctx context.Context, queue string) (api.Paused, error)
	ReleaseLane(ctx context.Context, agent string) (api.Released, error)
}

// Options say what the view shows and where.
type Options struct {
	URL      string // of the director, as people know it
	Director Director
	// Live follows the stream, however often it breaks, and hands each event
	// on. It returns when ctx has ended, or with the error for which it gives
	// up: that ends the view.
	Live func(ctx context.Context, each func(Event)) error
	// Search returns the first tasks that match a query of the search grammar.
	Search func(ctx context.Context, query string) (api.Search, error)

	In        io.Reader
	Out       io.Writer
	NoColours bool
	Now       func() time.Time
}

// Run shows the view until a person leaves it or ctx ends. The terminal is
// then as it was before.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	m := newModel(ctx, o)
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler()}
	if o.NoColours {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	p := tea.NewProgram(m, opts...)
	m.send = p.Send
	beside.Go(func() {
		if err := o.Live(ctx, func(e Event) { p.Send(e) }); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	_, err := p.Run()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // the director refused; a person's interrupt is none of that
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
