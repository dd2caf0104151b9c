package redis

import (
	"context"
	"slices"
	"strconv"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Commit writes a batch in one script. Commands are joined: one ZADD adds all new members of an
// index, so the cost depends on the rows rather than the verbs.
func (g *backend) Commit(ctx context.Context, d *verbs.Delta) error {
	g.rememberName(d.Writer)
	script := commitScript
	if slices.ContainsFunc(d.Tasks, func(t verbs.TaskChange) bool { return t.Before == nil }) {
		script = submitScript
	}
	answer, err := g.commit(ctx, script, g.changes(d))
	if err != nil {
		return err
	}
	switch said, _ := answer.ToString(); said {
	case "OK":
		return nil
	case "MOVED":
		return verbs.ErrMoved
	case "TAKEN":
		return verbs.ErrTaken
	default:
		return signalbox.Errorf(signalbox.CodeStoreFailed, "Redis answered a batch with %q: is something else between signalbox and the server?", said)
	}
}

// command is a command with accumulated arguments.
type command struct {
	name, key string
	args      []string
	every     int // how many arguments belong together
}

// pieceSize is the number of values that a script can pass to a command, with a margin.
const pieceSize = 6000

// changes converts a delta to the arguments of the script.
type changes struct {
	arena
	prefix   string
	commands map[[2]string]*command
	order    []*command
	ids      []string // of new tasks, each preceded by its score
	keys     []string // idempotency keys of new tasks, each followed by the id
	was, is  []indexEntry
	states   map[signalbox.State]int
	named    map[string]int
}

func (g *backend) changes(d *verbs.Delta) []string {
	c := changes{
		prefix: g.prefix, commands: make(map[[2]string]*command, 32), ids: make([]string, 0, 2*len(d.Tasks)),
		states: map[signalbox.State]int{}, named: map[string]int{},
	}
	for i := range d.Tasks {
		c.task(&d.Tasks[i])
	}
	c.recent()
	c.large(d)
	c.slots(d.Slots)
	c.docs(d.Docs)
	c.counts(d)
	c.journal(d)
	if d.Log != nil {
		c.add("RPUSH", "logs", string(d.Log))
		c.add("LTRIM", "logs", "-"+strconv.Itoa(verbs.LogsKept), "-1")
	}
	args := []string{d.Writer, decimal(d.Number), decimal(d.From.Moment), decimal(d.To.Moment), encodeRest(&d.To, d.InUse), g.info.ID, g.listeners()}
	args = append(append(args, strconv.Itoa(len(c.ids))), c.ids...)
	args = append(append(args, strconv.Itoa(len(c.keys))), c.keys...)
	for _, k := range c.order {
		args = k.appendTo(args)
	}
	return args
}

// listeners is the number of subscribers that need no signal: this process.
func (g *backend) listeners() string {
	if g.listens.Load() {
		return "1"
	}
	return "0"
}

// add appends arguments to the command on a key; every is how many belong together.
func (c *changes) add(name, key string, args ...string) {
	k := c.commands[[2]string{name, key}]
	if k == nil {
		k = &command{name: name, key: c.prefix + key, every: len(args)}
		if name == "docs" {
			k.key = key // of a kind
		}
		c.commands[[2]string{name, key}] = k
		c.order = append(c.order, k)
	}
	k.args = append(k.args, args...)
}

// appendTo appends the command, in pieces that the script can run.
func (k *command) appendTo(args []string) []string {
	for piece := range slices.Chunk(k.args, pieceSize/k.every*k.every) {
		args = append(args, strconv.Itoa(len(piece)+2), k.name, k.key)
		args = append(args, piece...)
	}
	return args
}

func (c *changes) task(t *verbs.TaskChange) {
	any := t.After
	if any == nil {
		any = t.Before
	}
	c.was, c.is = indexEntries(c.was[:0], t.Before), indexEntries(c.is[:0], t.After)
	for i := range c.was {
		if !slices.Contains(c.is, c.was[i]) {
			c.add("ZREM", c.key(&c.was[i]), c.member(&c.was[i], any.ID))
		}
	}
	for i := range c.is {
		if !slices.Contains(c.was, c.is[i]) {
			c.add("ZADD", c.key(&c.is[i]), "0", c.member(&c.is[i], any.ID))
		}
	}
	switch {
	case t.Before == nil:
		c.begun(t.After)
	case t.After == nil:
		c.forgotten(t.Before)
	}
	if t.After != nil {
		c.add("HSET", "tasks", any.ID, c.arena.task(t.After))
		c.count(t.After, 1)
		if t.Before != nil && t.Before.HasEnv && t.After.State.Terminal() {
			c.add("HDEL", "sealed", c.number(any.Seq))
		}
	}
	if t.Before != nil {
		c.count(t.Before, -1)
	}
}

func (c *changes) key(p *indexEntry) string { return indexes[p.index].key + p.name }

func (c *changes) begun(t *signalbox.Task) {
	c.ids = append(c.ids, "0", t.ID)
	if t.IdempotencyKey != "" {
		c.keys = append(c.keys, t.IdempotencyKey, t.ID)
	}
}

// recent lists the new IDs among the newest ones, which are searched for endings. Some may belong to deleted
// tasks.
func (c *changes) recent() {
	if len(c.ids) == 0 {
		return
	}
	begin := c.begin(32 * len(c.ids))
	for i := 1; i < len(c.ids); i += 2 {
		c.b = append(append(c.b, '\n'), c.ids[i]...)
	}
	c.add("recent", "recent", strconv.Itoa(len(c.ids)/2), c.since(begin))
}

func (c *changes) forgotten(t *signalbox.Task) {
	seq := c.number(t.Seq)
	c.add("HDEL", "tasks", t.ID)
	c.add("ZREM", "ids", t.ID)
	c.add("HDEL", "requests", seq)
	c.add("HDEL", "results", seq)
	if t.HasEnv {
		c.add("HDEL", "sealed", seq)
	}
	if t.IdempotencyKey != "" {
		c.add("HDEL", "keys", t.IdempotencyKey)
	}
}

// count updates the counts that only the batch can compute.
func (c *changes) count(t *signalbox.Task, by int) {
	if t.State.InFlight() {
		c.states[t.State] += by
	}
	if t.SessionID != "" {
		c.named[t.SessionID] += by
	}
}

func (c *changes) large(d *verbs.Delta) {
	for i := range d.Requests {
		r := &d.Requests[i]
		seq := c.number(r.Seq)
		c.add("HSET", "requests", seq, c.request(&r.Request))
		if len(r.Request.SealedEnv) > 0 {
			c.add("HSET", "sealed", seq, string(r.Request.SealedEnv))
		}
	}
	for i := range d.Results {
		c.add("HSET", "results", c.number(d.Results[i].Seq), c.result(&d.Results[i].Result))
	}
}

func (c *changes) slots(list []verbs.SlotChange) {
	for i := range list {
		s := &list[i]
		name := c.slotName(s.Agent, s.Slot)
		if s.After == nil {
			c.add("HDEL", "slots", name)
			c.add("ZREM", "slots.name", name)
			continue
		}
		c.add("HSET", "slots", name, c.slot(s.After))
		if s.Before == nil {
			c.add("ZADD", "slots.name", "0", name)
		}
	}
}

func (c *changes) docs(list []verbs.Doc) {
	for i := range list {
		d := &list[i]
		row := ""
		if d.Body != nil {
			row = c.doc(d)
		}
		c.add("docs", d.Kind, d.ID, c.number(d.Sort), row)
	}
}

func (c *changes) counts(d *verbs.Delta) {
	for _, q := range d.Queues {
		if q.Waiting == 0 {
			c.add("HDEL", "queues", q.Queue)
			continue
		}
		c.add("HSET", "queues", q.Queue, strconv.Itoa(q.Waiting)+" "+strconv.Itoa(q.Ready))
	}
	for _, l := range d.Limits {
		if l.N == 0 {
			c.add("HDEL", "limits", l.Limit)
			continue
		}
		c.add("HSET", "limits", l.Limit, strconv.Itoa(l.N))
	}
	for state, by := range c.states {
		if by != 0 {
			c.add("count", "states", string(state), strconv.Itoa(by))
		}
	}
	for session, by := range c.named {
		if by != 0 {
			c.add("count", "named", session, strconv.Itoa(by))
		}
	}
}

// journal writes the entries of the batch as one record, or as several if their Seqs have a gap. A record's
// name is its last Seq, so that records with entries above a Seq can be selected by name.
func (c *changes) journal(d *verbs.Delta) {
	for list := d.Entries; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].Seq == list[n-1].Seq+1 {
			n++
		}
		c.record(d.Writer, list[:n])
		list = list[n:]
	}
	if d.Cut > 0 {
		c.add("HSET", "head", "cut", decimal(d.Cut))
		c.add("XTRIM", "journal", "MINID", "=", decimal(d.Cut+1))
	}
}

func (c *changes) record(writer string, list []signalbox.Entry) {
	var p pack.Packer
	newest := list[0].At
	begin := c.begin(128 * len(list))
	for i := range list {
		c.b = p.Entry(c.b, &list[i])
		if list[i].At.After(newest) {
			newest = list[i].At
		}
	}
	body := c.since(begin)
	first, last := list[0].Seq, list[len(list)-1].Seq
	k := &command{name: "XADD", key: c.prefix + "journal"}
	k.args = []string{decimal(last), "first", decimal(first), "newest", decimal(newest.UnixMilli()), "writer", writer, "entries", body}
	k.every = len(k.args)
	c.order = append(c.order, k)
}
