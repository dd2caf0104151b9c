package verbs

import (
	"log/slog"
	"sync"
)

// A row about directors or tool queues that cannot be read is quarantined, so that the
// others of its kind stay usable: it is moved to docs of a kind of their own, for later
// inspection, and logged once. The row of a director stays where it is and counts as that
// of a dead one: its next beat overwrites it, and removing it would look as if the director
// had left.

// quarantine logs damaged rows, each once.
type quarantine struct {
	log    *slog.Logger
	mu     sync.Mutex
	logged map[DocKey]bool
}

func (q *quarantine) report(key DocKey, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.logged[key] {
		return
	}
	if q.logged == nil {
		q.logged = map[DocKey]bool{}
	}
	q.logged[key] = true
	q.log.Error("a damaged row was quarantined: everything else continues", "kind", key.Kind, "id", key.ID, "error", err)
}

// all decodes all docs of a kind, and returns those that cannot be decoded; missing is set
// if they are not loaded.
func all[T any](x *workingSet, q *quarantine, kind string, read func(id string, body []byte) (T, error)) (list []T, bad []*docRow) {
	docs := x.page(kind)
	list = make([]T, 0, len(docs))
	for _, r := range docs {
		if v, err := decodeDoc(r, read); err == nil {
			list = append(list, *v)
		} else {
			q.report(r.doc.DocKey, err)
			bad = append(bad, r)
		}
	}
	return list, bad
}

// quarantine moves damaged docs away.
func (x *workingSet) quarantine(bad []*docRow) {
	for _, r := range bad {
		key := r.doc.DocKey
		if r.doc.Body == nil { // quarantined already
			continue
		}
		x.put(kindQuarantine, key.Kind+"/"+key.ID, 0, r.doc.Body, nil)
		x.drop(key.Kind, key.ID)
	}
}

// readable decodes docs. other returns a value for a doc that cannot be decoded; if other is nil, such docs
// are omitted.
func readable[T any](q *quarantine, docs []Doc, read func(id string, body []byte) (T, error), other func(id string) T) []T {
	var list []T
	for i := range docs {
		d := &docs[i]
		switch v, err := read(d.ID, d.Body); {
		case err == nil:
			list = append(list, v)
		default:
			q.report(d.DocKey, err)
			if other != nil {
				list = append(list, other(d.ID))
			}
		}
	}
	return list
}
