package verbs

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Docs for rows that a backend used to have in tables of its own, as the verbs would have
// written them.

func doc(kind, id string, sort int64, body []byte) Doc {
	return Doc{DocKey: DocKey{kind, id}, Sort: sort, Body: body}
}

// AgentDoc is an agent.
func AgentDoc(a *signalbox.Agent) Doc { return doc(kindAgent, a.Name, 0, pack.Agent(a)) }

// PauseDoc is a pause.
func PauseDoc(p *signalbox.Pause) Doc { return doc(KindPause, p.Queue, 0, pack.Pause(p)) }

// SessionDocs are a session, and that it is its agent's current one.
func SessionDocs(s *signalbox.Session) []Doc {
	docs := []Doc{doc(kindSession, s.ID, s.LastUsed.UnixMilli(), pack.Session(s))}
	if s.Current {
		docs = append(docs, doc(kindCurrent, s.Agent, 0, nameBody(s.ID)))
	}
	return docs
}

// StaleDoc is what void executions of a task said.
func StaleDoc(seq int64, list []signalbox.Stale) Doc {
	return doc(KindStale, staleID(seq), 0, pack.Stales(list))
}

// TokenDoc is a token, packed.
func TokenDoc(id string, packed []byte) Doc { return doc(kindToken, id, 0, packed) }

// UserDoc is a user, packed.
func UserDoc(id string, packed []byte) Doc { return doc(kindUser, id, 0, packed) }

// AuditDocs are a row of the audit log, and the head that it is for as long as
// none comes behind it.
func AuditDocs(a *signalbox.Audit) []Doc {
	body := pack.Audit(a)
	return []Doc{doc(kindAudit, auditID(a.Seq), a.Seq, body), doc(kindAuditHead, auditHead, a.Seq, headBody(a.Seq, body))}
}

// ScheduleDocs are a schedule, and that its name is taken.
func ScheduleDocs(s *signalbox.Schedule) []Doc {
	return []Doc{doc(kindSchedule, s.ID, s.Rev, scheduleBody(s)), doc(kindScheduleName, s.Name, 0, nameBody(s.ID))}
}

// RunDocs are a run of a schedule, and that it is open.
func RunDocs(r *signalbox.ScheduleRun) []Doc {
	body := pack.Run(r)
	docs := []Doc{doc(kindRuns+r.ScheduleID, r.ID, r.FiredAt.UnixMilli(), body)}
	if r.Status.Open() {
		docs = append(docs, doc(kindOpenRun, openID(r.ScheduleID, r.ID), r.FiredAt.UnixMilli(), body))
	}
	return docs
}

// CountDocs are how many schedules there are, and the newest place and fence that
// tickets got.
func CountDocs(schedules, ticketPlace, ticketFence int64) []Doc {
	return []Doc{
		doc(kindCount, countSchedules, schedules, []byte{1}),
		doc(kindCount, countTickets, 0, givenBody(given{ticketPlace, ticketFence})),
	}
}

// BiasedDoc is how many tasks with a priority of their own wait in a queue.
func BiasedDoc(queue string, n int64) Doc { return doc(kindBiased, queue, n, []byte{1}) }

// KeptDoc is how many bytes ended tasks of an owner take.
func KeptDoc(owner string, bytes int64) Doc { return doc(kindKept, keptPrefix+owner, bytes, []byte{1}) }
