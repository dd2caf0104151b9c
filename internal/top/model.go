package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	part          bool // only a part of the screen is drawn, width wide
	nameColumn    int  // cells for the names of a list
	st            styles

	board  board
	heard  time.Time // when the last event came, by our own clock
	closed bool      // the stream has broken since
	page   page
	picks  [pages]pick
	tops   [pages]int // first line shown
	shown  shown
	filter string // of the lanes
	search search
	detail *detail   // nil: a list is shown
	beside bool      // the detail is that of the selected task, beside the list that the keys are for
	asking *question // nil: nothing is asked
	form   *form     // nil: nothing is filled in
	typing *line     // nil: no line is typed
	help   bool
	note   note
}

// pick is what is selected on a page: by name, so that it stays selected where
// it moves to.
type pick struct {
	row string // agent, queue, tool queue or task
	id  string // of a task in that row
}

// shown is what the last frame showed of a list.
type shown struct {
	keys         []string // of the rows that the lines of the body belong to
	row, rows    int      // the selected one, from 1, and all
	above, below bool     // there is more
	filter       string
	all          int // rows without the filter
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

// streamClosed says that the stream has broken and is opened anew.
type streamClosed struct{}

type tickMsg struct{}

// nextTick is tea.Tick, which would go on when the view is left.
func (m *model) nextTick() tea.Msg {
	select {
	case <-time.After(tick):
		return tickMsg{}
	case <-m.ctx.Done():
		return nil
	}
}

// Init asks the terminal whether it is dark, and begins to count the time.
func (m *model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.nextTick) }

// Update takes one message in.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	defer m.showBeside()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		m.st = newStyles(msg.IsDark())
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseMsg:
		return m, m.mouse(msg)
	case client.LiveEvent:
		m.board.take(msg)
		m.heard, m.closed = m.o.Now(), false
		m.keepPicks()
	case streamClosed:
		m.closed = true
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
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
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

// late reports whether the data is not what is now.
func (m *model) late() bool { return m.closed || m.age() >= lateAfter }

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
	if m.late() || !m.board.Known {
		return nil // the stream knows first when the director is back
	}
	var cmds []tea.Cmd
	if m.detail != nil {
		cmds = append(cmds, m.refreshDetail())
	}
	if m.page == pageTasks && !m.inDetail() {
		cmds = append(cmds, m.refreshSearch())
	}
	return tea.Batch(cmds...)
}

// maxEnded bounds the ended tasks that a board remembers.
const maxEnded = 300

// board is what the stream has said so far: what is, and what has ended since
// the view was opened.
type board struct {
	client.Board
	ended []api.LiveTask // newest first
}

// take takes one event in.
func (b *board) take(e client.LiveEvent) {
	b.Apply(e)
	if !b.Known || e.Kind == client.LiveBeat {
		return
	}
	for _, t := range e.Live.Tasks {
		if client.Ended(t.State) {
			b.ended = slices.DeleteFunc(slices.Clone(b.ended), func(have api.LiveTask) bool { return have.QueueID == t.QueueID })
			b.ended = slices.Insert(b.ended, 0, t)
		}
	}
	slices.SortStableFunc(b.ended, func(x, y api.LiveTask) int { return endOf(y).Compare(endOf(x)) })
	b.ended = b.ended[:min(len(b.ended), maxEnded)]
}

func endOf(t api.LiveTask) time.Time {
	if t.EndedAt == nil {
		return t.CreatedAt
	}
	return *t.EndedAt
}

// task finds what is known of a task. That it has ended is the last word.
func (b *board) task(id string) (api.LiveTask, bool) {
	lists := [][]api.LiveTask{b.ended}
	for i := range b.Agents {
		lists = append(lists, b.Agents[i].Current, b.Agents[i].Line)
	}
	for i := range b.Queues {
		lists = append(lists, b.Queues[i].Line)
	}
	for _, list := range append(lists, b.Tasks) {
		if at := indexOf(list, id); at >= 0 {
			return list[at], true
		}
	}
	return api.LiveTask{}, false
}

func (b *board) agent(name string) (api.LiveAgent, bool) {
	at, found := slices.BinarySearchFunc(b.Agents, name, func(a api.LiveAgent, n string) int { return cmp.Compare(a.Name, n) })
	if !found {
		return api.LiveAgent{}, false
	}
	return b.Agents[at], true
}

// live are all tasks that are known to run or wait, running ones first, each
// once.
func (b *board) live() []api.LiveTask {
	var out []api.LiveTask
	seen := map[string]bool{}
	add := func(list []api.LiveTask) {
		for _, t := range list {
			if !seen[t.QueueID] {
				seen[t.QueueID] = true
				out = append(out, t)
			}
		}
	}
	add(b.Tasks)
	for i := range b.Agents {
		add(b.Agents[i].Line)
	}
	for i := range b.Queues {
		add(b.Queues[i].Line)
	}
	return out
}
