package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func auditRules() []rule {
	return []rule{
		{"each row follows the one before", auditChain},
		{"the answer is the row as stored", auditAnswers},
		{"64 at once make one chain", auditRace},
		{"each filter selects", auditFilters},
		{"pages continue from a number, in both directions", auditPages},
		{"the limit of a page is 1 to 1,000", auditLimit},
		{"an empty log has no head", auditEmpty},
		{"hostile strings come back byte for byte", auditHostile},
		{"rows are never pruned, and none writes an entry", auditStays},
	}
}

func anAudit(n int) signalbox.Audit {
	return signalbox.Audit{
		At: start.Add(time.Duration(n) * time.Second), EventType: "agent_call", Action: fmt.Sprint("act-", n), Principal: "user:ann",
		UserID: "ann", AgentName: "a", Resource: "queue-1", Result: "success", IPAddress: "127.0.0.1", UserAgent: "curl",
		Details: `{"n":1}`, Severity: "info",
	}
}

func (b *fixture) audit(a signalbox.Audit) signalbox.Audit {
	b.Helper()
	got, err := b.AppendAudit(b.ctx, a)
	b.must(err)
	return got
}

func (b *fixture) auditLog(q store.AuditQuery) []signalbox.Audit {
	b.Helper()
	list, err := b.AuditLog(b.ctx, q)
	b.must(err)
	return list
}

func auditChain(b *fixture) {
	for n := range 5 {
		b.audit(anAudit(n))
	}
	var prev *signalbox.Audit
	log := b.auditLog(store.AuditQuery{Limit: 10})
	for i := range log {
		b.must(signalbox.CheckAudit(prev, &log[i]))
		prev = &log[i]
	}
	b.same("rows", len(log), 5)
	head, err := b.AuditHead(b.ctx)
	b.must(err)
	b.same("head", head, log[4])
}

func auditAnswers(b *fixture) {
	a := anAudit(1)
	a.Seq, a.Prev, a.Hash = 77, "made up", "made up" // the store sets them
	a.At = a.At.Add(999 * time.Microsecond).In(time.FixedZone("", 3600))
	got := b.audit(a)
	want := anAudit(1)
	want.Seq, want.Prev, want.Hash = 1, signalbox.AuditRoot, got.Hash
	b.same("row", got, want)
	b.same("stored", b.auditLog(store.AuditQuery{Limit: 1}), []signalbox.Audit{want})
}

func auditRace(b *fixture) {
	const n = 64
	for _, err := range together(n, func(i int) error { return second(b.AppendAudit(b.ctx, anAudit(i))) }) {
		b.must(err)
	}
	head, err := b.AuditHead(b.ctx)
	b.must(err)
	b.same("rows", head.Seq, int64(n)) // an invariant checks the chain
}

func auditFilters(b *fixture) {
	for _, change := range []func(*signalbox.Audit){
		func(*signalbox.Audit) {}, func(a *signalbox.Audit) { a.EventType = "login" }, func(a *signalbox.Audit) { a.Action = "x" },
		func(a *signalbox.Audit) { a.UserID = "bob" }, func(a *signalbox.Audit) { a.AgentName = "b" },
		func(a *signalbox.Audit) { a.Severity = "warning"; a.At = start.Add(time.Hour) },
	} {
		a := anAudit(0)
		change(&a)
		b.audit(a)
	}
	for _, c := range []struct {
		name  string
		query store.AuditQuery
		want  []int64
	}{
		{"event type", store.AuditQuery{EventType: "login"}, []int64{2}},
		{"action", store.AuditQuery{Action: "x"}, []int64{3}},
		{"user", store.AuditQuery{UserID: "bob"}, []int64{4}},
		{"agent", store.AuditQuery{AgentName: "b"}, []int64{5}},
		{"severity", store.AuditQuery{Severity: "warning"}, []int64{6}},
		{"since, that moment too", store.AuditQuery{Since: start.Add(time.Hour)}, []int64{6}},
		{"several, behind a number", store.AuditQuery{UserID: "ann", Severity: "info", After: 1}, []int64{2, 3, 5}},
		{"newest", store.AuditQuery{UserID: "ann", Newest: true}, []int64{6, 5, 3, 2, 1}},
		{"nothing fits", store.AuditQuery{UserID: "nobody"}, nil},
	} {
		c.query.Limit = 10
		b.same(c.name, auditSeqs(b.auditLog(c.query)), c.want)
	}
}

func auditSeqs(list []signalbox.Audit) []int64 {
	var seqs []int64
	for _, a := range list {
		seqs = append(seqs, a.Seq)
	}
	return seqs
}

func auditPages(b *fixture) {
	for n := range 7 {
		b.audit(anAudit(n))
	}
	for _, c := range []struct {
		query store.AuditQuery
		want  []int64
	}{
		{store.AuditQuery{}, []int64{1, 2, 3}},
		{store.AuditQuery{After: 3}, []int64{4, 5, 6}},
		{store.AuditQuery{After: -5}, []int64{1, 2, 3}},
		{store.AuditQuery{After: 7}, nil},
		{store.AuditQuery{After: math.MaxInt64}, nil},
		{store.AuditQuery{Newest: true}, []int64{7, 6, 5}},
		{store.AuditQuery{Newest: true, After: 5}, []int64{4, 3, 2}},
		{store.AuditQuery{Newest: true, After: 1}, nil},
	} {
		c.query.Limit = 3
		b.same(fmt.Sprintf("%+v", c.query), auditSeqs(b.auditLog(c.query)), c.want)
	}
}

func auditLimit(b *fixture) {
	for _, limit := range []int{-1, 0, 1001} {
		_, err := b.AuditLog(b.ctx, store.AuditQuery{Limit: limit})
		b.refused(err, signalbox.CodeValidation)
	}
}

func auditEmpty(b *fixture) {
	head, err := b.AuditHead(b.ctx)
	b.must(err)
	b.same("head", head, signalbox.Audit{})
	b.same("log", b.auditLog(store.AuditQuery{Limit: 1}), []signalbox.Audit(nil))
}

func auditHostile(b *fixture) {
	for n, h := range hostile() {
		got := b.audit(signalbox.Audit{
			At: start, EventType: h, Action: h, Principal: h, UserID: h, AgentName: h, Resource: h, Result: h, IPAddress: h,
			UserAgent: h, Details: h, Severity: h,
		})
		b.same("strings", [2]string{got.Details, got.Severity}, [2]string{h, h})
		b.same("by what they hold", b.auditLog(store.AuditQuery{UserID: h, EventType: h, Limit: 10}), []signalbox.Audit{got})
		b.same("rows", got.Seq, int64(n+1))
	}
}

func auditStays(b *fixture) {
	b.audit(anAudit(0))
	b.prune(start.Add(1000*time.Hour), 10)
	b.same("rows", len(b.auditLog(store.AuditQuery{Limit: 10})), 1)
	b.same("entries", len(b.journal()), 0)
	b.same("next", b.audit(anAudit(1)).Seq, int64(2))
}
