package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Doc returns a doc, nil if there is none.
func (g *backend) Doc(ctx context.Context, k verbs.DocKey) (d *verbs.Doc, err error) {
	var q questions
	q.docOf(k, &d)
	return d, g.answers(ctx, g.reader, &q)
}

// Docs lists a page of a kind.
func (g *backend) Docs(ctx context.Context, p verbs.Page) (list []verbs.Doc, err error) {
	var q questions
	q.page(&p, &list)
	return list, g.answers(ctx, g.reader, &q)
}

func (q *questions) docOf(k verbs.DocKey, to **verbs.Doc) {
	q.ask(eachRow(k.Kind, func(d verbs.Doc) { *to = &d }), "get", "docs:"+k.Kind, k.ID)
}

func (q *questions) page(p *verbs.Page, to *[]verbs.Doc) {
	index, from := "docs.id:", "1"
	if p.BySort {
		index, from = "docs.sort:", "9"
	}
	first, last, command := "-", "+", "ZRANGEBYLEX"
	if p.Falling {
		first, last, command = "+", "-", "ZREVRANGEBYLEX"
	}
	if p.After != nil {
		first = before(p.After.ID)
		if p.BySort {
			first = before(prefixOf(p.After.Sort) + p.After.ID)
		}
	}
	limit := "-1"
	if p.Limit > 0 {
		limit = strconv.Itoa(p.Limit)
	}
	q.ask(eachRow(p.Kind, func(d verbs.Doc) { *to = append(*to, d) }),
		"of", "docs:"+p.Kind, from, command, index+p.Kind, first, last, "LIMIT", "0", limit)
}

// eachRow reads rows of docs of a kind; missing ones are omitted.
func eachRow(kind string, read func(d verbs.Doc)) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		rows, err := texts(m)
		for i := 0; err == nil && i < len(rows); i++ {
			if rows[i] == "" {
				continue
			}
			var d verbs.Doc
			if d, err = readDoc(kind, rows[i]); err == nil {
				read(d)
			}
		}
		return err
	}
}
