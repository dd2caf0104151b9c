package pack

import (
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Agent packs an agent without its name.
func Agent(a *signalbox.Agent) []byte {
	p := New(64)
	p.Texts(a.Kind, a.URL, string(a.Source), string(a.SealedToken), a.WorkDir, a.Version)
	p.Int(int64(a.Slots))
	p.Flags(a.Fencing, a.SealedToken != nil, a.Proof)
	p.Times(a.CreatedAt)
	if a.Account != "" {
		p.Texts(a.Account)
	}
	return p.b
}

// ReadAgent decodes what Agent packed.
func ReadAgent(name string, body []byte) (signalbox.Agent, error) {
	d := Read(body)
	a := signalbox.Agent{Name: name, Kind: d.Text(), URL: d.Text(), Source: signalbox.AgentSource(d.Text())}
	token, has := d.Bytes(), false
	a.WorkDir, a.Version, a.Slots = d.Text(), d.Text(), int(d.Int())
	if d.Flags(&a.Fencing, &has, &a.Proof); has {
		a.SealedToken = append([]byte{}, token...)
	}
	a.CreatedAt = d.Time()
	if len(d.b) > 0 {
		a.Account = d.Text()
	}
	if d.Bad {
		return a, signalbox.Errorf(signalbox.CodeStoreCorrupt, "agent %q cannot be read: its row is damaged; remove it and register it anew", name)
	}
	return a, nil
}

// Account packs an account without its name.
func Account(a *signalbox.Account) []byte {
	p := New(128)
	p.Texts(a.Kind, a.Login, string(a.State), a.Reason, a.Window, a.Source, a.Probe.Agent)
	p.Ints(int64(a.Failures), int64(a.Claims), int64(a.Probe.Slot), a.Probe.Fence, int64(len(a.Windows)))
	p.Times(a.Since, a.Until, a.HeardAt)
	for _, w := range a.Windows {
		p.Texts(w.Name)
		p.Int(int64(math.Round(w.UsedPercent * 1000)))
		p.Times(w.ResetsAt)
	}
	return p.b
}

// ReadAccount decodes what Account packed.
func ReadAccount(name string, body []byte) (signalbox.Account, error) {
	d := Read(body)
	a := signalbox.Account{
		Name: name, Kind: d.Text(), Login: d.Text(), State: signalbox.AccountState(d.Text()), Reason: d.Text(), Window: d.Text(), Source: d.Text(),
		Probe: signalbox.AccountProbe{Agent: d.Text()},
	}
	a.Failures, a.Claims, a.Probe.Slot, a.Probe.Fence = int(d.Int()), int(d.Int()), int(d.Int()), d.Int()
	n := d.count(signalbox.MaxAccountWindows)
	a.Since, a.Until, a.HeardAt = d.Time(), d.Time(), d.Time()
	for range n {
		a.Windows = append(a.Windows, signalbox.AccountWindow{Name: d.Text(), UsedPercent: float64(d.Int()) / 1000, ResetsAt: d.Time()})
	}
	if d.Bad {
		return a, signalbox.Errorf(signalbox.CodeStoreCorrupt, "account %q cannot be read: its row is damaged; open it anew", name)
	}
	return a, nil
}

// Holds packs what executions hold of one resource.
func Holds(list []signalbox.Hold) []byte {
	p := New(32 * len(list))
	p.Int(int64(len(list)))
	for i := range list {
		h := &list[i]
		p.Texts(h.Agent)
		p.Ints(int64(h.Slot), h.Fence, int64(h.N), int64(len(h.Values)))
		p.Texts(h.Values...)
	}
	return p.b
}

// ReadHolds decodes what Holds packed.
func ReadHolds(resource string, body []byte) ([]signalbox.Hold, error) {
	d := Read(body)
	list := make([]signalbox.Hold, 0, 1)
	for n := d.count(signalbox.MaxResourceCapacity); n > 0; n-- {
		h := signalbox.Hold{Resource: resource, Agent: d.Text(), Slot: int(d.Int()), Fence: d.Int(), N: int(d.Int())}
		for v := d.count(signalbox.MaxResourceCapacity); v > 0; v-- {
			h.Values = append(h.Values, d.Text())
		}
		list = append(list, h)
	}
	if d.Bad {
		return nil, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the holds of resource %q cannot be read: its row is damaged", resource)
	}
	return list, nil
}

// Pause packs a pause without its queue.
func Pause(v *signalbox.Pause) []byte {
	p := New(64)
	p.Texts(v.Reason, v.By)
	p.Ints(v.AtMS, v.UntilMS)
	return p.b
}

// ReadPause decodes what Pause packed.
func ReadPause(queue string, body []byte) (signalbox.Pause, error) {
	d := Read(body)
	v := signalbox.Pause{Queue: queue, Reason: d.Text(), By: d.Text(), AtMS: d.Int(), UntilMS: d.Int()}
	if d.Bad {
		return v, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the pause of queue %q cannot be read: its row is damaged; resume the queue and pause it anew", queue)
	}
	return v, nil
}

// Session packs a session without its id.
func Session(s *signalbox.Session) []byte {
	p := Packer{make([]byte, 0, 48+len(s.Agent)+len(s.Owner)+len(s.Title))}
	p.b = append(p.b, firstVersion)
	p.Texts(s.Agent, string(s.Source), s.Owner, s.Title, string(s.State))
	p.Int(int64(s.Turns))
	p.Flags(s.Current)
	p.Times(s.CreatedAt, s.LastUsed)
	return p.b
}

// ReadSession decodes what Session packed.
func ReadSession(id string, body []byte) (signalbox.Session, error) {
	d := Read(body)
	s := signalbox.Session{
		ID: id, Agent: d.Text(), Source: signalbox.Source(d.Text()), Owner: d.Text(), Title: d.Text(),
		State: signalbox.SessionState(d.Text()), Turns: int(d.Int()),
	}
	d.Flags(&s.Current)
	s.CreatedAt, s.LastUsed = d.Time(), d.Time()
	if d.Bad {
		return s, signalbox.Errorf(signalbox.CodeStoreCorrupt, "session %q cannot be read: its row is damaged", id)
	}
	return s, nil
}

// Audit packs a row of the audit log without its Seq.
func Audit(a *signalbox.Audit) []byte {
	p := Packer{make([]byte, 0, 256+len(a.Details))}
	p.b = append(p.b, firstVersion)
	p.Int(a.At.UnixMilli())
	p.Texts(a.EventType, a.Action, a.Principal, a.UserID, a.AgentName, a.Resource, a.Result)
	p.Texts(a.IPAddress, a.UserAgent, a.Details, a.Severity, a.Prev, a.Hash)
	return p.b
}

// ReadAudit decodes what Audit packed.
func ReadAudit(seq int64, body []byte) (signalbox.Audit, error) {
	d := Read(body)
	a := signalbox.Audit{
		Seq: seq, At: time.UnixMilli(d.Int()).UTC(), EventType: d.Text(), Action: d.Text(), Principal: d.Text(),
		UserID: d.Text(), AgentName: d.Text(), Resource: d.Text(), Result: d.Text(), IPAddress: d.Text(), UserAgent: d.Text(),
		Details: d.Text(), Severity: d.Text(), Prev: d.Text(), Hash: d.Text(),
	}
	if d.Bad {
		return a, signalbox.Errorf(signalbox.CodeStoreCorrupt, "row %d of the audit log cannot be read: it is damaged", seq)
	}
	return a, nil
}

// Stales packs the final reports of void executions of a task.
func Stales(list []signalbox.Stale) []byte {
	p := New(64)
	p.Int(int64(len(list)))
	for i := range list {
		s := &list[i]
		p.Int(s.Fence)
		p.Texts(s.Agent, s.TaskID, s.State, s.Message, s.Result.Output, s.Result.Tail, string(Result(&s.Result)))
		p.Times(s.At)
	}
	return p.b
}

// ReadStales decodes what Stales packed, for a task with that id.
func ReadStales(id string, body []byte) (list []signalbox.Stale, err error) {
	d := Read(body)
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		s := signalbox.Stale{Fence: d.Int(), Agent: d.Text(), TaskID: d.Text(), State: d.Text(), Message: d.Text()}
		output, tail, rest := d.Text(), d.Text(), d.Bytes()
		s.At = d.Time()
		if s.Result, err = ReadResult(output, tail, rest); err != nil {
			break
		}
		list = append(list, s)
	}
	if d.Bad || err != nil {
		return nil, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the late reports of task %s cannot be read: its row is damaged", id)
	}
	return list, nil
}

// UsageID is the key of a row of usage.
func UsageID(k *signalbox.UsageKey) string {
	p := New(64)
	p.Int(int64(k.Day))
	p.Texts(k.Agent, k.Schedule, k.Owner, k.Model)
	return string(p.b)
}

// Usage packs a row of usage without its key.
func Usage(u *signalbox.Usage) []byte {
	p := New(64)
	p.Texts(u.Email)
	p.Ints(u.Runs, u.Failed, u.RunMS, u.InputTokens, u.OutputTokens, u.NanoUSD)
	return p.b
}

// ReadUsage decodes what UsageID and Usage packed.
func ReadUsage(id string, body []byte) (signalbox.Usage, error) {
	k, d := Read([]byte(id)), Read(body)
	u := signalbox.Usage{UsageKey: signalbox.UsageKey{Day: signalbox.Day(k.Int()), Agent: k.Text(), Schedule: k.Text(), Owner: k.Text(), Model: k.Text()}}
	u.Email, u.Runs, u.Failed, u.RunMS, u.Spent = d.Text(), d.Int(), d.Int(), d.Int(), spentOf(&d)
	if k.Bad || d.Bad {
		return u, signalbox.Errorf(signalbox.CodeStoreCorrupt, "a row of usage cannot be read: its row is damaged")
	}
	return u, nil
}
