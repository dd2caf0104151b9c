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

// Limits for the age of data and messages.
const (
	tick       = 500 * time.Millisecond
	lateAfter  = 5 * time.Second  // the view says that the data is old
	staleAfter = 15 * time.Second // the data is grey, and nothing can be changed
	noteFor    = 8 * time.Second  // how long a message stays
)

// page is one of the pages, each with a list.
type page int

// The pages, in the order of their keys.
const (
	pageLanes page = iota
	pageCapacity
	pageTasks
	pages // number of pages
)

var pageNames = [pages]string{"Lanes", "Capacity", "Tasks"}

// model is the state of the view: the data, and what is shown of it.
type model struct {
	ctx  context.Context
	o    Options
	send func(tea.Msg) // sends a message to the program from other goroutines

	width, height int
	part          bool // draw only a part of the screen, width wide
	nameColumn    int  // cells for the names of a list
	st            styles

	board  board
	heard  time.Time // when the last event arrived, by the local clock
	closed bool      // the stream has broken since
	page   page
	picks  [pages]pick
	tops   [pages]int // first line shown
	shown  shown
	filter string // filter of the lanes
	search search
	detail *detail   // nil: a list is shown
	beside bool      // the detail is shown beside the list, and the list gets the keys
	asking *question // nil: no question
	form   *form     // nil: no form
	typing *line     // nil: no line is being typed
	help   bool
	note   note
}

// pick is the selection on a page, by name, so that it stays on a row that moves.
type pick struct {
	row string // agent, queue, tool queue or task
	id  string // ID of a task in that row
}

// shown is the part of a list that the last frame showed.
type shown struct {
	keys         []string // for each line of the body, the key of its row
	row, rows    int      // number of the selected row, from 1, and of all rows
	above, below bool     // there are more rows above, below
	filter       string
	all          int // number of rows without the filter
}

// note is a message that is shown for noteFor.
type note struct {
	text  string
	bad   bool
	until time.Time
}

// search is the query of the page Tasks, with its answer.
type search struct {
	query    string
	result   *api.Search
	err      string
	asking   bool
	asked    time.Time
	revision int64 // revision of the board when the query was sent
}

func newModel(ctx context.Context, o Options) *model {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &model{ctx: ctx, o: o, st: newStyles(true), width: 80, height: 24, heard: o.Now(), send: func(tea.Msg) {}}
}

// streamClosed says that the stream has broken and is being reopened.
type streamClosed struct{}

type tickMsg struct{}

// nextTick is tea.Tick that ends with the view.
func (m *model) nextTick() tea.Msg {
	select {
	case <-time.After(tick):
		return tickMsg{}
	case <-m.ctx.Done():
		return nil
	}
}

// Init asks the terminal for its background, and starts the ticks.
func (m *model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.nextTick) }

// Update applies one message.
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

// View returns the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	v.WindowTitle = m.title()
	return v
}

// title says whether something needs a person, with the words of the dashboard.
func (m *model) title() string {
	if h := m.board.Health; len(h.Attention)+h.More > 0 {
		return fmt.Sprintf("(%d) Signalbox", len(h.Attention)+h.More)
	}
	return "Signalbox"
}

// age is the time since the last event from the director.
func (m *model) age() time.Duration { return max(0, m.o.Now().Sub(m.heard)) }

// late reports whether the data may be outdated.
func (m *model) late() bool { return m.closed || m.age() >= lateAfter }

func (m *model) stale() bool { return m.age() >= staleAfter || !m.board.Known }

// now is the director's clock. It stops when the data is late, so that ages do not grow
// while it is unknown whether their tasks still run.
func (m *model) now() time.Time { return m.board.At.Add(min(m.age(), lateAfter)) }

func (m *model) since(t time.Time) string { return ago(m.now().Sub(t)) }

func (m *model) say(format string, args ...any) {
	m.note = note{text: plain(fmt.Sprintf(format, args...)), until: m.o.Now().Add(noteFor)}
}

func (m *model) complain(format string, args ...any) {
	m.say(format, args...)
	m.note.bad = true
}

// refresh repeats the requests for data that the stream does not carry.
func (m *model) refresh() tea.Cmd {
	if m.note.text != "" && m.o.Now().After(m.note.until) {
		m.note = note{}
	}
	if m.late() || !m.board.Known {
		return nil // the stream notices first when the director is back
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

// maxEnded limits the ended tasks that a board remembers.
const maxEnded = 300

// board is the state from the stream: the present, and the tasks that have ended since
// the view was opened.
type board struct {
	client.Board
	ended []api.LiveTask // newest first
}

// take applies one event.
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

// task returns what is known about a task. An ended task stays ended, even if a lane
// still shows an older state.
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

// live returns all tasks that run or wait, running ones first, each once.
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
