package top

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Director is what the view asks of the director; *client.Client is one.
type Director interface {
	Task(ctx context.Context, id string) (api.Task, error)
	Why(ctx context.Context, id string) (api.Why, error)
	FollowOutput(ctx context.Context, id string, after int64, each func(api.Output) error) error
	Cancel(ctx context.Context, id string) (api.Cancelled, error)
	Retry(ctx context.Context, id string, edit api.RetryRequest, opts client.SubmitOptions) (api.SubmitResponse, error)
	Edit(ctx context.Context, id string, edit api.EditRequest) (api.Task, error)
	Pause(ctx context.Context, req api.PauseRequest) (api.Paused, error)
	Resume(ctx context.Context, queue string) (api.Paused, error)
	ReleaseLane(ctx context.Context, agent string) (api.Released, error)
	Search(ctx context.Context, query string, opts client.SearchOptions) (api.Search, error)
	Submit(ctx context.Context, req api.SubmitRequest, opts client.SubmitOptions) (api.SubmitResponse, error)
	Chat(ctx context.Context, agent string, req api.ChatRequest, opts client.ChatOptions) (client.ChatReply, error)
	// Live follows the stream, however often it breaks, and calls closed each
	// time that it does. The error for which it gives up ends the view.
	Live(ctx context.Context, closed func()) iter.Seq2[client.LiveEvent, error]
}

// Options say what the view shows and where.
type Options struct {
	URL       string // of the director, as people know it
	Director  Director
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
		for e, err := range o.Director.Live(ctx, func() { p.Send(streamClosed{}) }) {
			if err != nil {
				cancel(err) // the first cause counts: a person's leave before this
				return
			}
			p.Send(e)
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
