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

// Director is the part of the client that the view needs; *client.Client implements it.
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
	// Live follows the live stream. It reconnects when the stream breaks, and calls
	// closed each time. The error with which it gives up ends the view.
	Live(ctx context.Context, closed func()) iter.Seq2[client.LiveEvent, error]
}

// Options are the settings of the view.
type Options struct {
	URL       string // URL of the director, for display
	Director  Director
	In        io.Reader
	Out       io.Writer
	NoColours bool
	Now       func() time.Time
}

// Run shows the view until the user quits or ctx ends. It restores the terminal
// before it returns.
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
				cancel(err) // the first cause counts: the user may have quit before
				return
			}
			p.Send(e)
		}
	})
	_, err := p.Run()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // the error of the director; an interrupt is context.Canceled
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
