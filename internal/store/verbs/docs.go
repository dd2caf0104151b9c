package verbs

import (
	"slices"
	"strings"
)

// The kinds of docs. Runs of schedules and tickets have a kind for each schedule or tool queue, so that each
// can be read separately.
const (
	KindPause        = "pause"         // by queue; a Backend's Snapshot has them
	kindAgent        = "agent"         // by name
	kindAccount      = "account"       // by name
	kindHold         = "hold"          // by resource
	kindParked       = "parked"        // by gate and task; Sort: when it was parked
	kindLanding      = "landing"       // by task, whose landing is open; Sort: when it was asked for
	kindSession      = "session"       // by id; Sort: LastUsed
	kindCurrent      = "current"       // by agent: the id of its current session
	kindToken        = "token"         // by id
	kindUser         = "user"          // by id
	kindAudit        = "audit"         // by Seq, which is Sort, too
	kindAuditHead    = "audit head"    // the newest row; Sort: Seq
	KindStale        = "stale"         // by Seq of the task: all reports
	kindSchedule     = "schedule"      // by id
	kindScheduleName = "schedule name" // by name: the id
	kindOpenRun      = "open run"      // by schedule and run
	kindCount        = "count"         // how many there are of rows without a list
	kindBiased       = "biased"        // by queue; Sort: how many
	kindKept         = "kept"          // by keptBy and owner; Sort: bytes that ended tasks take
	kindDirector     = "director"      // by ID
	kindHolding      = "lease"         // by agent
	kindHeard        = "heard"         // by agent
	kindQuarantine   = "aside"         // by kind and ID: what was damaged
	kindUsage        = "usage"         // by pack.UsageID; Sort: the day
	kindUsageRows    = "usage rows"    // by day; Sort: how many rows of usage it has
	kindToolLimits   = "tool limits"   // by tool queue: those of all its keys
	kindRuns         = "run/"          // and the id of the schedule; Sort: FiredAt
	kindTickets      = "ticket/"       // and the tool queue; Sort: Place
)

// documents are the docs that the set knows.
type documents struct {
	kinds   map[string]*docKind
	changed []*docRow
	n       int // rows
	size    int // bytes, about
}

type docKind struct {
	whole bool // all of them are loaded
	rows  map[string]*docRow
}

type docRow struct {
	kind    *docKind
	doc     Doc  // its key is always set; a nil Body: it does not exist
	changed bool // by the batch
	value   any  // the decoded Body, if it was decoded before
}

func newDocuments() documents { return documents{kinds: map[string]*docKind{}} }

func (d *documents) kind(name string) *docKind {
	k := d.kinds[name]
	if k == nil {
		k = &docKind{rows: map[string]*docRow{}}
		d.kinds[name] = k
	}
	return k
}

func (d *documents) add(k *docKind, key DocKey) *docRow {
	r := &docRow{kind: k, doc: Doc{DocKey: key}}
	k.rows[key.ID] = r
	d.n++
	return r
}

func (d *documents) remove(r *docRow) {
	if r.kind.rows[r.doc.ID] == r {
		delete(r.kind.rows, r.doc.ID)
		d.n--
	}
}

// doc returns a doc; nil if it does not exist, or if that is unknown: then missing is set.
func (x *workingSet) doc(kind, id string) *docRow {
	k := x.docs.kind(kind)
	if r := k.rows[id]; r != nil {
		if r.doc.Body == nil {
			return nil
		}
		return r
	}
	if !k.whole {
		x.want.doc(DocKey{kind, id})
		x.missing = true
	}
	return nil
}

// page returns all docs of a kind by ID; missing is set if they are not loaded.
func (x *workingSet) page(kind string) []*docRow {
	k := x.docs.kind(kind)
	if !k.whole {
		x.want.page(kind)
		x.missing = true
		return nil
	}
	list := make([]*docRow, 0, len(k.rows))
	for _, r := range k.rows {
		if r.doc.Body != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *docRow) int { return strings.Compare(a.doc.ID, b.doc.ID) })
	return list
}

// put stores a doc; body is not nil. value is its decoded form.
func (x *workingSet) put(kind, id string, sort int64, body []byte, value any) {
	k := x.docs.kind(kind)
	r := k.rows[id]
	if r == nil {
		r = x.docs.add(k, DocKey{kind, id})
	}
	x.docs.size += len(body) - len(r.doc.Body)
	r.doc, r.value = Doc{DocKey: DocKey{kind, id}, Sort: sort, Body: body}, value
	x.docChanged(r)
}

// drop deletes a doc, if it exists.
func (x *workingSet) drop(kind, id string) {
	k := x.docs.kind(kind)
	r := k.rows[id]
	if r == nil {
		if k.whole {
			return
		}
		r = x.docs.add(k, DocKey{kind, id})
	}
	x.docs.size -= len(r.doc.Body)
	r.doc.Body, r.value = nil, nil
	x.docChanged(r)
}

func (x *workingSet) docChanged(r *docRow) {
	if !r.changed {
		r.changed = true
		x.docs.changed = append(x.docs.changed, r)
	}
	x.wrote = true
}

// adoptDoc adds a loaded doc, unless the batch changed it. nil: it does not exist.
func (x *workingSet) adoptDoc(key DocKey, doc *Doc) {
	k := x.docs.kind(key.Kind)
	if k.rows[key.ID] != nil {
		return
	}
	r := x.docs.add(k, key)
	if doc != nil {
		r.doc = *doc
		if r.doc.Body == nil {
			r.doc.Body = []byte{}
		}
		x.docs.size += len(doc.Body)
	}
}

// adoptPage adds all docs of a kind.
func (x *workingSet) adoptPage(kind string, docs []Doc) {
	for i := range docs {
		x.adoptDoc(docs[i].DocKey, &docs[i])
	}
	x.docs.kind(kind).whole = true
}

// decodeDoc decodes a doc, cached; the result must not be changed. nil if there is no doc.
func decodeDoc[T any](r *docRow, read func(id string, body []byte) (T, error)) (*T, error) {
	if r == nil {
		return nil, nil
	}
	if v, ok := r.value.(*T); ok {
		return v, nil
	}
	v, err := read(r.doc.ID, r.doc.Body)
	if err != nil {
		return nil, err
	}
	r.value = &v
	return &v, nil
}

func decodeAll[T any](docs []Doc, read func(id string, body []byte) (T, error)) ([]T, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	list := make([]T, 0, len(docs))
	for i := range docs {
		v, err := read(docs[i].ID, docs[i].Body)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// nameBody is the body of a doc that holds a name.
func nameBody(name string) []byte { return append([]byte{1}, name...) }

func nameOf(r *docRow) string {
	if r == nil || len(r.doc.Body) == 0 {
		return ""
	}
	return string(r.doc.Body[1:])
}
