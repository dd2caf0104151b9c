package verbs

import "github.com/signalbox-ai/signalbox"

// requests keeps what was asked for of tasks that wait, so that a claim need
// not read it back. Half of what it may keep is dropped at once, the older.
type requests struct {
	young, old map[int64]*signalbox.Request
	size       int // of the young ones
}

const requestBytes = 16 << 20

func (q *requests) keep(seq int64, r *signalbox.Request) {
	size := sizeOf(r)
	if q.young == nil || q.size+size > requestBytes {
		q.old, q.young, q.size = q.young, map[int64]*signalbox.Request{}, 0
	}
	if size <= requestBytes/16 {
		q.young[seq] = r
		q.size += size
	}
}

// get returns a request, nil if it is not known.
func (q *requests) get(seq int64) *signalbox.Request {
	if r := q.young[seq]; r != nil {
		return r
	}
	return q.old[seq]
}

func (q *requests) drop(seq int64) {
	if r := q.young[seq]; r != nil {
		delete(q.young, seq)
		q.size -= sizeOf(r)
		return
	}
	delete(q.old, seq)
}

func sizeOf(r *signalbox.Request) int {
	return 256 + len(r.Prompt) + len(r.SealedEnv) + len(r.SystemPrompt) + len(r.Arguments) + len(r.Metadata)
}
