package pack

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Schedule packs a schedule without its id, revision and name.
func Schedule(s *signalbox.Schedule) []byte {
	p := Packer{make([]byte, 0, 256+len(s.Prompt)+len(s.Description))}
	p.b = append(p.b, firstVersion)
	p.Texts(s.Description, s.Cron, s.Timezone, string(s.Source), s.Owner, s.OwnerEmail)
	p.Texts(s.Prompt, s.Model, s.Tier, s.SessionID, s.Agent, s.Kind, string(s.OnLost))
	p.Texts(string(s.Overlap), string(s.Missed), string(s.OnFull))
	p.Texts(string(s.LastStatus), s.LastQueueID, s.LastError)
	p.Bool(s.Enabled)
	p.Int(int64(s.TimeoutSeconds))
	p.Int(int64(s.Priority))
	p.Int(int64(s.MissedWindow))
	p.Bool(s.Project != nil)
	if s.Project != nil {
		p.Texts(s.Project.Name, s.Project.Path)
	}
	p.Bool(s.Thinking != nil)
	if s.Thinking != nil {
		p.Bool(*s.Thinking)
	}
	p.Times(s.CreatedAt, s.UpdatedAt, s.Cursor, s.LastRun)
	delivers := !s.Checking.IsZero() || s.Landing != nil
	if s.Workspace != nil || delivers { // older rows have none
		workspace(&p, s.Workspace)
	}
	if delivers {
		checking(&p, s.Checking)
		p.Bool(s.Landing != nil)
		wish(&p, s.Landing.Said())
	}
	return p.b
}

// ReadSchedule decodes what Schedule packed.
func ReadSchedule(id string, body []byte) (signalbox.Schedule, error) {
	d := Read(body)
	s := signalbox.Schedule{
		ID:          id,
		Description: d.Text(), Cron: d.Text(), Timezone: d.Text(), Source: signalbox.ScheduleSource(d.Text()),
		Owner: d.Text(), OwnerEmail: d.Text(),
		Prompt: d.Text(), Model: d.Text(), Tier: d.Text(), SessionID: d.Text(), Agent: d.Text(), Kind: d.Text(),
		OnLost: signalbox.OnLost(d.Text()), Overlap: signalbox.Overlap(d.Text()), Missed: signalbox.Missed(d.Text()),
		OnFull: signalbox.OnFull(d.Text()), LastStatus: signalbox.RunStatus(d.Text()), LastQueueID: d.Text(), LastError: d.Text(),
	}
	s.Enabled = d.Bool()
	s.TimeoutSeconds, s.Priority, s.MissedWindow = int(d.Int()), int(d.Int()), time.Duration(d.Int())
	if d.Bool() {
		s.Project = &signalbox.Project{Name: d.Text(), Path: d.Text()}
	}
	if d.Bool() {
		thinking := d.Bool()
		s.Thinking = &thinking
	}
	s.CreatedAt, s.UpdatedAt, s.Cursor, s.LastRun = d.Time(), d.Time(), d.Time(), d.Time()
	if len(d.b) > 0 {
		s.Workspace = workspaceOf(&d)
	}
	if len(d.b) > 0 {
		s.Checking = checkingOf(&d)
		if lands, w := d.Bool(), wishOf(&d); lands {
			s.Landing = &w
		}
	}
	if d.Bad {
		return s, signalbox.Errorf(signalbox.CodeStoreCorrupt, "schedule %q cannot be read: its row is damaged; remove it and make it anew", id)
	}
	return s, nil
}

// Run packs a run without its id and its schedule's.
func Run(r *signalbox.ScheduleRun) []byte {
	p := New(64)
	p.Texts(string(r.Trigger), string(r.Status), r.QueueID, r.Previous, r.Error, r.By)
	p.Int(int64(r.Attempts))
	p.Int(int64(r.Missed))
	p.Times(r.Nominal, r.FiredAt, r.EndedAt)
	return p.b
}

// ReadRun decodes what Run packed.
func ReadRun(schedule, id string, body []byte) (signalbox.ScheduleRun, error) {
	d := Read(body)
	r := signalbox.ScheduleRun{
		ID: id, ScheduleID: schedule, Trigger: signalbox.RunTrigger(d.Text()), Status: signalbox.RunStatus(d.Text()),
		QueueID: d.Text(), Previous: d.Text(), Error: d.Text(), By: d.Text(),
	}
	r.Attempts, r.Missed = int(d.Int()), int(d.Int())
	r.Nominal, r.FiredAt, r.EndedAt = d.Time(), d.Time(), d.Time()
	if d.Bad {
		return r, signalbox.Errorf(signalbox.CodeStoreCorrupt, "firing %s of schedule %q cannot be read: its row is damaged; remove the schedule and make it anew", id, schedule)
	}
	return r, nil
}

// Token packs a token without its id.
func Token(t *signalbox.Token) []byte {
	p := New(64)
	p.Bool(t.Login)
	p.Texts(t.Name, string(t.Hash), string(t.Kind), t.Principal, t.CreatedBy)
	list(&p, t.Scopes)
	list(&p, t.Agents)
	p.Times(t.CreatedAt, t.ExpiresAt, t.RevokedAt)
	return p.b
}

// ReadToken decodes what Token packed.
func ReadToken(id string, body []byte) (signalbox.Token, error) {
	d := Read(body)
	t := signalbox.Token{ID: id, Login: d.Bool(), Name: d.Text()}
	t.Hash = append(t.Hash, d.Bytes()...)
	t.Kind, t.Principal, t.CreatedBy = signalbox.PrincipalKind(d.Text()), d.Text(), d.Text()
	t.Scopes, t.Agents = listOf[signalbox.Scope](&d), listOf[string](&d)
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = d.Time(), d.Time(), d.Time()
	if d.Bad {
		return t, signalbox.Errorf(signalbox.CodeStoreCorrupt, "token %q cannot be read: its row is damaged; revoke it and make a new one", id)
	}
	return t, nil
}

// User packs a user without the id.
func User(u *signalbox.User) []byte {
	p := New(64)
	p.Texts(u.Email, u.Password, string(u.Role))
	list(&p, u.Agents)
	p.Times(u.CreatedAt)
	p.Bool(u.Disabled)
	return p.b
}

// ReadUser decodes what User packed.
func ReadUser(id string, body []byte) (signalbox.User, error) {
	d := Read(body)
	u := signalbox.User{ID: id, Email: d.Text(), Password: d.Text(), Role: signalbox.Role(d.Text())}
	u.Agents = listOf[string](&d)
	u.CreatedAt = d.Time()
	u.Disabled = d.Bool()
	if d.Bad {
		return u, signalbox.Errorf(signalbox.CodeStoreCorrupt, "user %q cannot be read: the row is damaged; delete the user and make it anew", id)
	}
	return u, nil
}

// ReadExtra decodes into a task the rare fields that older versions stored separately at submit.
func ReadExtra(t *signalbox.Task, extra []byte) error {
	if len(extra) == 0 {
		return nil
	}
	d := Reader{b: extra[1:], Bad: extra[0] != firstVersion}
	t.Mode, t.Owner, t.OwnerEmail = signalbox.Mode(d.Text()), d.Text(), d.Text()
	t.Depth = int(d.Int())
	t.Waits = d.Bool()
	t.QueuedAs = int(d.Int())
	if len(d.b) > 0 {
		t.Tool = d.Text()
	}
	if d.Bad {
		return damaged("row")
	}
	return nil
}
