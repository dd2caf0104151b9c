package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// kind is the docs of a kind. Readers get copies.
type kind struct{ byID, bySort docs }

// docs is a sorted list of docs.
type docs struct {
	compare func(a, b *verbs.Doc) int
	rows    []*verbs.Doc
}

func byID(a, b *verbs.Doc) int { return strings.Compare(a.ID, b.ID) }

func bySort(a, b *verbs.Doc) int { return cmp.Or(cmp.Compare(a.Sort, b.Sort), byID(a, b)) }

func (b *Backend) kind(name string) *kind {
	k := b.docs[name]
	if k == nil {
		k = &kind{docs{compare: byID}, docs{compare: bySort}}
		b.docs[name] = k
	}
	return k
}

func (s *docs) find(d *verbs.Doc) (n int, found bool) {
	return slices.BinarySearchFunc(s.rows, d, s.compare)
}

func (s *docs) add(d *verbs.Doc) {
	n, _ := s.find(d)
	s.rows = slices.Insert(s.rows, n, d)
}

func (s *docs) remove(d *verbs.Doc) {
	n, _ := s.find(d)
	s.rows = slices.Delete(s.rows, n, n+1)
}

// put stores a doc, or removes it if it has no Body. Bodies are shared with the working set,
// which does not modify them.
func (k *kind) put(d verbs.Doc) {
	n, found := k.byID.find(&d)
	if found {
		k.bySort.remove(k.byID.rows[n])
	}
	switch {
	case d.Body == nil && found:
		k.byID.rows = slices.Delete(k.byID.rows, n, n+1)
		return
	case d.Body == nil:
		return
	case !found:
		k.byID.rows = slices.Insert(k.byID.rows, n, new(verbs.Doc))
	}
	row := k.byID.rows[n]
	*row = d
	row.Body = slices.Clip(d.Body)
	k.bySort.add(row)
}

// Doc returns a doc.
func (b *Backend) Doc(_ context.Context, key verbs.DocKey) (*verbs.Doc, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.doc(key), nil
}

func (b *Backend) doc(key verbs.DocKey) *verbs.Doc {
	k := b.docs[key.Kind]
	if k == nil {
		return nil
	}
	n, found := k.byID.find(&verbs.Doc{DocKey: key})
	if !found {
		return nil
	}
	d := *k.byID.rows[n]
	return &d
}

// Docs lists docs of a kind.
func (b *Backend) Docs(_ context.Context, p verbs.Page) ([]verbs.Doc, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.page(&p), nil
}

func (b *Backend) page(p *verbs.Page) (page []verbs.Doc) {
	k := b.docs[p.Kind]
	if k == nil {
		return nil
	}
	s := &k.byID
	if p.BySort {
		s = &k.bySort
	}
	rows := s.rows
	if p.After != nil {
		n, found := s.find(p.After)
		switch {
		case p.Falling:
			rows = rows[:n]
		case found:
			rows = rows[n+1:]
		default:
			rows = rows[n:]
		}
	}
	n := len(rows)
	if p.Limit > 0 {
		n = min(n, p.Limit)
	}
	for i := range n {
		if p.Falling {
			i = len(rows) - 1 - i
		}
		page = append(page, *rows[i])
	}
	return page
}
