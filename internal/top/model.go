package top

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// How old data may be.
const (
	tick       = 500 * time.Millisecond
	lateAfter  = 5 * time.Second  // it is called old
	staleAfter = 15 * time.Second // it is grey, and nothing can be changed
	noteFor    = 8 * time.Second  // a message stays that long
)

// page is one of the lists.
type page int

// The pages, in the order of their keys.
const (
	pageLanes page = iota
	pageCapacity
	pageTasks
	pages // how many there are
)

var pageNames = [pages]string{"Lanes", "Capacity", "Tasks"}

// model is the view's state: what is known, and what a person looks at.
type model struct {
	ctx  context.Context
	o    Options
	send func(tea.Msg) // to the program, from other goroutines

	width, height int
	st            styles

	board  board
	heard  time.Time // when the last event came, by our own clock
	page   page
	picks  [pages]pick
	tops   [pages]int // first line shown
	search search
	detail *detail   // nil: a list is shown
	asking *question // nil: nothing is asked
	typing *string   // text of the search line while it is typed
	help   bool
	note   note
}

// pick is what is selected on a page: by name, so that it stays selected where
// it moves to.
type pick struct {
	row string // agent, queue, tool queue or task
	id  string // of a task in that row
}

// note is a message for a while.
type note struct {
	text  string
	bad   bool
	until time.Time
}

// search is the query of the page Tasks and its answer.
type search struct {
	query    string
	result   *api.Search
	err      string
	asking   bool
	asked    time.Time
	revision int64 // of the board when it was asked
}

func newModel(ctx context.Context, o Options) *model {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &model{ctx: ctx, o: o, st: newStyles(true), width: 80, height: 24, heard: o.Now(), send: func(tea.Msg) {}}
}

type tickMsg struct{}

// nextTick is tea.Tick, which would go on when the view is left.
func (m *model) nextTick() tea.Msg {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	select {
	case <-timer.C:
		return tickMsg{}
	case <-m.ctx.Done():
		return nil
	}
}

// Init asks the terminal whether it is dark, and begins to count the time.
func (m *model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.nextTick) }

// Update takes one message in.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		m.st = newStyles(msg.IsDark())
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case client.LiveEvent:
		m.board.take(msg)
		m.heard = m.o.Now()
		m.keepPicks()
	case tickMsg:
		return m, tea.Batch(m.nextTick, m.refresh())
	case answer:
		return m, m.answered(msg)
	case searched:
		m.found(msg)
	case whyMsg, taskMsg, outputMsg, outputEnd:
		m.detailed(msg)
	}
	return m, nil
}

// View is the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.WindowTitle = m.title()
	return v
}

// title says, as the pages do, whether something needs a person.
func (m *model) title() string {
	if h := m.board.Health; len(h.Attention)+h.More > 0 {
		return fmt.Sprintf("(%d) Signalbox", len(h.Attention)+h.More)
	}
	return "Signalbox"
}

// age is how long nothing has come from the director.
func (m *model) age() time.Duration { return max(0, m.o.Now().Sub(m.heard)) }

func (m *model) stale() bool { return m.age() >= staleAfter || !m.board.Known }

// now is the director's clock, as far as it is known: ages do not grow while
// nobody knows whether what they are of still goes on.
func (m *model) now() time.Time { return m.board.At.Add(min(m.age(), lateAfter)) }

func (m *model) since(t time.Time) string { return ago(m.now().Sub(t)) }

func (m *model) say(format string, args ...any) {
	m.note = note{text: plain(fmt.Sprintf(format, args...)), until: m.o.Now().Add(noteFor)}
}

func (m *model) complain(format string, args ...any) {
	m.say(format, args...)
	m.note.bad = true
}

// refresh asks anew for what the stream does not bring.
func (m *model) refresh() tea.Cmd {
	if m.note.text != "" && m.o.Now().After(m.note.until) {
		m.note = note{}
	}
	if m.age() >= lateAfter || !m.board.Known {
		return nil // the stream knows first when the director is back
	}
	if m.detail != nil {
		return m.refreshDetail()
	}
	if m.page == pageTasks {
		return m.refreshSearch()
	}
	return nil
}
