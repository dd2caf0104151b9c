package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// questions are the requests of the reading script, executed atomically, with a reader for each
// answer.
type questions struct {
	args []string
	read []func(m rueidis.RedisMessage) error
}

func (q *questions) ask(read func(m rueidis.RedisMessage) error, name, first string, more ...string) {
	q.args = append(q.args, name, strconv.Itoa(1+len(more)), first)
	q.args = append(q.args, more...)
	q.read = append(q.read, read)
}

// of asks for the tasks that a command lists in an index.
func (q *questions) of(in index, name string, read func(m rueidis.RedisMessage) error, command string, args ...string) {
	at := &indexes[in]
	q.ask(read, "of", "tasks", append([]string{strconv.Itoa(8*at.numbers + 1), command, at.key + name}, args...)...)
}

// answers executes them in one exchange.
func (g *backend) answers(ctx context.Context, by clientRole, q *questions) error {
	m, err := g.run(ctx, by, readScript, q.args)
	if err != nil {
		return err
	}
	return q.take(m)
}

var errAnswer = errors.New("the answer has an unexpected form")

func (q *questions) take(m rueidis.RedisMessage) error {
	list, err := m.ToArray()
	if err == nil && len(list) != len(q.read) {
		err = errAnswer
	}
	for i := 0; err == nil && i < len(list); i++ {
		err = q.read[i](list[i])
	}
	var known *signalbox.Error
	if err != nil && !errors.As(err, &known) {
		return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "what Redis answered could not be read", Err: err}
	}
	return err
}

// texts reads a list of texts; a missing one is "".
func texts(m rueidis.RedisMessage) ([]string, error) {
	list, err := m.ToArray()
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i := range list {
		if !list[i].IsNil() {
			if all[i], err = list[i].ToString(); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func eachText(f func(i int, text string)) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		list, err := texts(m)
		for i, text := range list {
			f(i, text)
		}
		return err
	}
}

// rowsInto reads rows of tasks that may be missing into a list of that length.
func rowsInto(to []*signalbox.Task) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		rows, err := texts(m)
		if err == nil && len(rows) != len(to) {
			return errAnswer
		}
		for i := 0; err == nil && i < len(rows); i++ {
			if rows[i] != "" {
				to[i], err = readTask(rows[i])
			}
		}
		return err
	}
}

// listInto reads the rows of tasks in an index.
func listInto(to *[]*signalbox.Task) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		rows, err := texts(m)
		if err != nil {
			return err
		}
		list := make([]*signalbox.Task, len(rows))
		for i, row := range rows {
			if list[i], err = readTask(row); err != nil {
				return err
			}
		}
		*to = list
		return nil
	}
}

// tasksInto is listInto for reads, which return values.
func tasksInto(to *[]signalbox.Task) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		var list []*signalbox.Task
		err := listInto(&list)(m)
		for _, t := range list {
			*to = append(*to, *t)
		}
		return err
	}
}

func slotsInto(to *[]signalbox.Slot) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		rows, err := texts(m)
		for i := 0; err == nil && i < len(rows); i++ {
			var s signalbox.Slot
			s, err = readSlot(rows[i])
			*to = append(*to, s)
		}
		return err
	}
}

// storeCounters are the store-wide counters.
type storeCounters struct {
	verbs.Counters
	number int64 // of the writer's last batch
	inUse  [2]int
	id     string
	cut    int64 // Seq of the newest deleted journal entry
}

func (q *questions) head(writer string, read func(h storeCounters)) {
	q.ask(func(m rueidis.RedisMessage) error {
		list, err := texts(m)
		if err != nil || len(list) != 5 {
			return errors.Join(err, errAnswer)
		}
		h := storeCounters{id: list[2], cut: integer(list[3]), number: integer(list[4])}
		h.Moment = integer(list[0])
		if list[1] != "" && !h.readRest(list[1]) {
			return damaged("head")
		}
		read(h)
		return nil
	}, "head", writer)
}

// encodeRest encodes the counters other than Moment, in the order of readRest. They are
// decimal: Lua numbers are exact to 2^53 only.
func encodeRest(c *verbs.Counters, inUse [2]int) string {
	list := []int64{c.Generation, c.Seq, c.Place, c.Fence, c.Entry, c.EnqueuedMS, c.WokenMS, int64(inUse[0]), int64(inUse[1])}
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

func (h *storeCounters) readRest(text string) bool {
	parts := strings.Fields(text)
	var used [2]int64
	to := []*int64{&h.Generation, &h.Seq, &h.Place, &h.Fence, &h.Entry, &h.EnqueuedMS, &h.WokenMS, &used[0], &used[1]}
	if len(parts) < len(to) {
		return false
	}
	for i, n := range to {
		v, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return false
		}
		*n = v
	}
	h.inUse = [2]int{int(used[0]), int(used[1])}
	return true
}

// integer reads a number that this program wrote; "" is 0.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
