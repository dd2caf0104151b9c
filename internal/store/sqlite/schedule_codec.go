package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// packSchedule packs what nothing is sought by: all but the id, the revision
// and the name.
func packSchedule(s *signalbox.Schedule) []byte {
	p := packer{make([]byte, 0, 256+len(s.Prompt)+len(s.Description))}
	p.b = append(p.b, packedVersion)
	p.texts(s.Description, s.Cron, s.Timezone, string(s.Source), s.Owner, s.OwnerEmail)
	p.texts(s.Prompt, s.Model, s.Tier, s.SessionID, s.Agent, s.Kind, string(s.OnLost))
	p.texts(string(s.Overlap), string(s.Missed), string(s.OnFull))
	p.texts(string(s.LastStatus), s.LastQueueID, s.LastError)
	p.bool(s.Enabled)
	p.int(int64(s.TimeoutSeconds))
	p.int(int64(s.Priority))
	p.int(int64(s.MissedWindow))
	p.bool(s.Project != nil)
	if s.Project != nil {
		p.texts(s.Project.Name, s.Project.Path)
	}
	p.bool(s.Thinking != nil)
	if s.Thinking != nil {
		p.bool(*s.Thinking)
	}
	p.times(s.CreatedAt, s.UpdatedAt, s.Cursor, s.LastRun)
	return p.b
}

// scanSchedule reads a row of the columns n, id, rev, name and body.
func scanSchedule(q *query) (signalbox.Schedule, error) {
	s, err := unpackSchedule(q.textAt(1), q.bytesAt(4))
	s.Rev, s.Name = q.intAt(2), q.textAt(3)
	return s, err
}

func unpackSchedule(id string, body []byte) (signalbox.Schedule, error) {
	d := unpacking(body)
	s := signalbox.Schedule{
		ID:          id,
		Description: d.text(), Cron: d.text(), Timezone: d.text(), Source: signalbox.ScheduleSource(d.text()),
		Owner: d.text(), OwnerEmail: d.text(),
		Prompt: d.text(), Model: d.text(), Tier: d.text(), SessionID: d.text(), Agent: d.text(), Kind: d.text(),
		OnLost: signalbox.OnLost(d.text()), Overlap: signalbox.Overlap(d.text()), Missed: signalbox.Missed(d.text()),
		OnFull: signalbox.OnFull(d.text()), LastStatus: signalbox.RunStatus(d.text()), LastQueueID: d.text(), LastError: d.text(),
	}
	s.Enabled = d.bool()
	s.TimeoutSeconds, s.Priority, s.MissedWindow = int(d.int()), int(d.int()), time.Duration(d.int())
	if d.bool() {
		s.Project = &signalbox.Project{Name: d.text(), Path: d.text()}
	}
	if d.bool() {
		thinking := d.bool()
		s.Thinking = &thinking
	}
	s.CreatedAt, s.UpdatedAt, s.Cursor, s.LastRun = d.time(), d.time(), d.time(), d.time()
	if d.bad {
		return s, signalbox.Errorf(signalbox.CodeStoreCorrupt, "schedule %q cannot be read: its row is damaged; remove it and make it anew", id)
	}
	return s, nil
}

// packRun packs all of a run but its id and that of its schedule.
func packRun(r *signalbox.ScheduleRun) []byte {
	p := packer{[]byte{packedVersion}}
	p.texts(string(r.Trigger), string(r.Status), r.QueueID, r.Previous, r.Error, r.By)
	p.int(int64(r.Attempts))
	p.int(int64(r.Missed))
	p.times(r.Nominal, r.FiredAt, r.EndedAt)
	return p.b
}

func unpackRun(schedule, id string, body []byte) (signalbox.ScheduleRun, error) {
	d := unpacking(body)
	r := signalbox.ScheduleRun{
		ID: id, ScheduleID: schedule, Trigger: signalbox.RunTrigger(d.text()), Status: signalbox.RunStatus(d.text()),
		QueueID: d.text(), Previous: d.text(), Error: d.text(), By: d.text(),
	}
	r.Attempts, r.Missed = int(d.int()), int(d.int())
	r.Nominal, r.FiredAt, r.EndedAt = d.time(), d.time(), d.time()
	if d.bad {
		return r, signalbox.Errorf(signalbox.CodeStoreCorrupt, "firing %s of schedule %q cannot be read: its row is damaged; remove the schedule and make it anew", id, schedule)
	}
	return r, nil
}
