package verbs

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Docs for rows that a backend used to keep in its own tables, in the form that the verbs write.

func doc(kind, id string, sort int64, body []byte) Doc {
	return Doc{DocKey: DocKey{kind, id}, Sort: sort, Body: body}
}

// AgentDoc returns the doc of an agent.
func AgentDoc(a *signalbox.Agent) Doc { return doc(kindAgent, a.Name, 0, pack.Agent(a)) }

// PauseDoc returns the doc of a pause.
func PauseDoc(p *signalbox.Pause) Doc { return doc(KindPause, p.Queue, 0, pack.Pause(p)) }

// SessionDocs returns the docs of a session, and of its being its agent's current one.
func SessionDocs(s *signalbox.Session) []Doc {
	docs := []Doc{doc(kindSession, s.ID, s.LastUsed.UnixMilli(), pack.Session(s))}
	if s.Current {
		docs = append(docs, doc(kindCurrent, s.Agent, 0, nameBody(s.ID)))
	}
	return docs
}

// StaleDoc returns the doc with the final reports of void executions of a task.
func StaleDoc(seq int64, list []signalbox.Stale) Doc {
	return doc(KindStale, staleID(seq), 0, pack.Stales(list))
}

// TokenDoc returns the doc of a packed token.
func TokenDoc(id string, packed []byte) Doc { return doc(kindToken, id, 0, packed) }

// UserDoc returns the doc of a packed user.
func UserDoc(id string, packed []byte) Doc { return doc(kindUser, id, 0, packed) }

// AuditDocs returns the docs of a row of the audit log, and of the head, which it is until another row
// follows.
func AuditDocs(a *signalbox.Audit) []Doc {
	body := pack.Audit(a)
	return []Doc{doc(kindAudit, auditID(a.Seq), a.Seq, body), doc(kindAuditHead, auditHead, a.Seq, headBody(a.Seq, body))}
}

// ScheduleDocs returns the docs of a schedule and of its name.
func ScheduleDocs(s *signalbox.Schedule) []Doc {
	return []Doc{doc(kindSchedule, s.ID, s.Rev, scheduleBody(s)), doc(kindScheduleName, s.Name, 0, nameBody(s.ID))}
}

// RunDocs returns the docs of a run of a schedule, and of its being open.
func RunDocs(r *signalbox.ScheduleRun) []Doc {
	body := pack.Run(r)
	docs := []Doc{doc(kindRuns+r.ScheduleID, r.ID, r.FiredAt.UnixMilli(), body)}
	if r.Status.Open() {
		docs = append(docs, doc(kindOpenRun, openID(r.ScheduleID, r.ID), r.FiredAt.UnixMilli(), body))
	}
	return docs
}

// CountDocs returns the docs of the number of schedules, and of the newest place and fence given to tickets.
func CountDocs(schedules, ticketPlace, ticketFence int64) []Doc {
	return []Doc{
		doc(kindCount, countSchedules, schedules, []byte{1}),
		doc(kindCount, countTickets, 0, givenBody(given{ticketPlace, ticketFence})),
	}
}

// BiasedDoc returns the doc of the number of tasks with a priority of their own that wait in a queue.
func BiasedDoc(queue string, n int64) Doc { return doc(kindBiased, queue, n, []byte{1}) }

// KeptDoc returns the doc of the bytes that ended tasks of an owner take.
func KeptDoc(owner string, bytes int64) Doc { return doc(kindKept, keptPrefix+owner, bytes, []byte{1}) }
