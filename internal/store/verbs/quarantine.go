package verbs

import (
	"log/slog"
	"sync"
)

// A row about directors or tool queues that cannot be read is set aside, so that
// the others of its kind go on: it is moved to docs of a kind of their own,
// where whoever looks for what went wrong finds it, and the log tells of it
// once. The row of a director stays where it is, as that of one that is dead:
// its next beat writes it anew, and who sees the row go takes the director for
// one that left.

// quarantine logs damaged rows, each once.
type quarantine struct {
	log  *slog.Logger
	mu   sync.Mutex
	told map[DocKey]bool
}

func (q *quarantine) tell(key DocKey, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.told[key] {
		return
	}
	if q.told == nil {
		q.told = map[DocKey]bool{}
	}
	q.told[key] = true
	q.log.Error("a damaged row is set aside: all else goes on without it", "kind", key.Kind, "id", key.ID, "error", err)
}

// all returns what all docs of a kind say, and which of them cannot be read, if
// the set knows them; else it is short.
func all[T any](x *workingSet, q *quarantine, kind string, read func(id string, body []byte) (T, error)) (list []T, bad []*docRow) {
	docs := x.page(kind)
	list = make([]T, 0, len(docs))
	for _, r := range docs {
		if v, err := said(r, read); err == nil {
			list = append(list, *v)
		} else {
			q.tell(r.doc.DocKey, err)
			bad = append(bad, r)
		}
	}
	return list, bad
}

// quarantine moves damaged docs away.
func (x *workingSet) quarantine(bad []*docRow) {
	for _, r := range bad {
		key := r.doc.DocKey
		if r.doc.Body == nil { // it was named twice
			continue
		}
		x.put(kindQuarantine, key.Kind+"/"+key.ID, 0, r.doc.Body, nil)
		x.drop(key.Kind, key.ID)
	}
}

// readable returns what those docs say that can be read; other makes a value
// of another one, where that is not to be left out.
func readable[T any](q *quarantine, docs []Doc, read func(id string, body []byte) (T, error), other func(id string) T) []T {
	var list []T
	for i := range docs {
		d := &docs[i]
		switch v, err := read(d.ID, d.Body); {
		case err == nil:
			list = append(list, v)
		default:
			q.tell(d.DocKey, err)
			if other != nil {
				list = append(list, other(d.ID))
			}
		}
	}
	return list
}
