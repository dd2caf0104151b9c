package pack

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// The states by their number in a packed task.
var states = [...]signalbox.State{
	1: signalbox.Pending, 2: signalbox.Dispatching, 3: signalbox.Working, 4: signalbox.Cancelling,
	5: signalbox.Completed, 6: signalbox.Failed, 7: signalbox.Cancelled, 8: signalbox.Timeout,
	9: signalbox.Parked,
}

func numberOf(state signalbox.State) int64 {
	for n, s := range states {
		if s == state && n > 0 {
			return int64(n)
		}
	}
	return 0
}

// Task appends a packed task to b.
func Task(b []byte, t *signalbox.Task) []byte {
	p := Packer{append(b, firstVersion)}
	p.Ints(t.Seq, t.Rev, numberOf(t.State), t.Place, t.Fence, int64(t.Slot), int64(t.Priority), int64(t.Bias))
	p.Ints(int64(t.Attempts), int64(t.Claims), int64(t.NoAnswers), int64(t.MaxAttempts), int64(t.Depth), int64(t.QueuedAs))
	p.Texts(t.ID, string(t.Reason), t.Message, t.Queue, t.Limit, t.SessionID, string(t.SessionMode), string(t.OnLost), t.RetryOf)
	p.Texts(string(t.Source), t.SourceJob, t.Preview, t.IdempotencyKey, t.IdempotencyHash, string(t.Mode), t.Tool)
	p.Texts(t.Owner, t.OwnerEmail, t.ParentID, t.Agent, t.AgentURL, t.TaskID, t.LastError, t.CancelledBy)
	p.Texts(string(t.StopReason), t.StopMessage)
	p.Flags(t.Ready, t.HasEnv, t.Waits, t.CancelRequested, t.IgnoreGates)
	p.Times(t.EnqueuedAt, t.NotBefore, t.WaitUntil, t.CreatedAt, t.DispatchedAt, t.StartedAt, t.EndedAt)
	// Older rows lack these groups; a later group is only written after all earlier ones.
	placed := t.Needs != nil || t.Workplace != "" || t.Landing != nil
	budgeted := t.Budget != signalbox.Budget{} || placed
	parked := t.Parking != nil || budgeted
	edited := !t.EditedAt.IsZero() || parked
	spent := t.Spent != signalbox.Spent{} || edited
	requeued := t.Requeues != nil || spent
	why := t.Failure != "" || t.Cause != "" || requeued
	if t.RequestSize != 0 || t.ResultSize != 0 || why {
		p.Ints(t.RequestSize, t.ResultSize)
	}
	if why {
		p.Texts(t.Failure, t.Cause)
	}
	if requeued {
		requeues(&p, t.Requeues)
	}
	if spent {
		p.Ints(t.Spent.InputTokens, t.Spent.OutputTokens, t.Spent.NanoUSD)
	}
	if edited {
		p.Times(t.EditedAt)
		p.Texts(t.EditedBy)
	}
	if parked {
		parking(&p, t.Parking)
	}
	if budgeted {
		p.Ints(t.Budget.NanoUSD, t.Budget.Tokens)
	}
	if placed {
		p.Texts(string(t.Workplace))
		needs(&p, t.Needs)
	}
	if t.Landing != nil {
		landing(&p, t.Landing)
	}
	return p.b
}

// ReadTask decodes what Task appended.
func ReadTask(b []byte) (signalbox.Task, error) {
	d := Read(b)
	t := signalbox.Task{Seq: d.Int(), Rev: d.Int(), State: stateOf(&d), Place: d.Int(), Fence: d.Int(), Slot: int(d.Int())}
	t.Priority, t.Bias = int(d.Int()), time.Duration(d.Int())
	t.Attempts, t.Claims, t.NoAnswers, t.MaxAttempts = int(d.Int()), int(d.Int()), int(d.Int()), int(d.Int())
	t.Depth, t.QueuedAs = int(d.Int()), int(d.Int())
	t.ID, t.Reason, t.Message, t.Queue, t.Limit = d.Text(), signalbox.Reason(d.Text()), d.Text(), d.Text(), d.Text()
	t.SessionID, t.SessionMode, t.OnLost, t.RetryOf = d.Text(), signalbox.SessionMode(d.Text()), signalbox.OnLost(d.Text()), d.Text()
	t.Source, t.SourceJob, t.Preview = signalbox.Source(d.Text()), d.Text(), d.Text()
	t.IdempotencyKey, t.IdempotencyHash, t.Mode, t.Tool = d.Text(), d.Text(), signalbox.Mode(d.Text()), d.Text()
	t.Owner, t.OwnerEmail, t.ParentID, t.Agent = d.Text(), d.Text(), d.Text(), d.Text()
	t.AgentURL, t.TaskID, t.LastError, t.CancelledBy = d.Text(), d.Text(), d.Text(), d.Text()
	t.StopReason, t.StopMessage = signalbox.Reason(d.Text()), d.Text()
	d.Flags(&t.Ready, &t.HasEnv, &t.Waits, &t.CancelRequested, &t.IgnoreGates)
	t.EnqueuedAt, t.NotBefore, t.WaitUntil, t.CreatedAt = d.Time(), d.Time(), d.Time(), d.Time()
	t.DispatchedAt, t.StartedAt, t.EndedAt = d.Time(), d.Time(), d.Time()
	if len(d.b) > 0 {
		t.RequestSize, t.ResultSize = d.Int(), d.Int()
	}
	if len(d.b) > 0 {
		t.Failure, t.Cause = d.Text(), d.Text()
	}
	if len(d.b) > 0 {
		t.Requeues = requeuesOf(&d)
	}
	if len(d.b) > 0 {
		t.Spent = spentOf(&d)
	}
	if len(d.b) > 0 {
		t.EditedAt, t.EditedBy = d.Time(), d.Text()
	}
	if len(d.b) > 0 {
		t.Parking = parkingOf(&d)
	}
	if len(d.b) > 0 {
		t.Budget = signalbox.Budget{NanoUSD: d.Int(), Tokens: d.Int()}
	}
	if len(d.b) > 0 {
		t.Workplace = signalbox.Workplace(d.Text())
		t.Needs = needsOf(&d)
	}
	if len(d.b) > 0 {
		t.Landing = landingOf(&d)
	}
	if d.Bad || (t.State == signalbox.Parked && t.Parking == nil) {
		return t, damaged("row")
	}
	return t, nil
}

func parking(p *Packer, k *signalbox.Parking) {
	if k == nil {
		k = &signalbox.Parking{}
	}
	p.Texts(string(k.Kind), k.Name, k.Text, k.Next)
	p.Times(k.Until, k.At)
	p.Int(int64(k.Count))
	p.Flags(k.Began)
}

func parkingOf(d *Reader) *signalbox.Parking {
	k := &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateKind(d.Text()), Name: d.Text(), Text: d.Text()}, Next: d.Text()}
	k.Until, k.At, k.Count = d.Time(), d.Time(), int(d.Int())
	d.Flags(&k.Began)
	if k.Kind == "" {
		return nil
	}
	return k
}

func landing(p *Packer, l *signalbox.Landing) {
	wish(p, l.LandWish)
	p.Texts(string(l.State), l.LandTask, l.Turn, l.Commit, l.Was, l.URL, l.Text, l.By)
	p.Ints(int64(l.Submits), int64(l.Failures), int64(l.Rounds))
	p.Times(l.NotBefore, l.At, l.Since)
}

func landingOf(d *Reader) *signalbox.Landing {
	l := &signalbox.Landing{LandWish: wishOf(d), State: signalbox.LandingState(d.Text()), LandTask: d.Text(), Turn: d.Text()}
	l.Commit, l.Was, l.URL, l.Text, l.By = d.Text(), d.Text(), d.Text(), d.Text(), d.Text()
	l.Submits, l.Failures, l.Rounds = int(d.Int()), int(d.Int()), int(d.Int())
	l.NotBefore, l.At, l.Since = d.Time(), d.Time(), d.Time()
	return l
}

func wish(p *Packer, w signalbox.LandWish) {
	p.Texts(w.Onto, w.Method)
	p.Bool(w.FastForward)
}

func wishOf(d *Reader) signalbox.LandWish {
	return signalbox.LandWish{Onto: d.Text(), Method: d.Text(), FastForward: d.Bool()}
}

func needs(p *Packer, list *[]signalbox.Need) {
	if list == nil {
		p.Int(0)
		return
	}
	p.Int(int64(len(*list)))
	for _, n := range *list {
		p.Texts(n.Resource)
		p.Int(int64(n.N))
	}
}

func needsOf(d *Reader) *[]signalbox.Need {
	n := d.count(signalbox.MaxNeeds)
	if n == 0 {
		return nil
	}
	list := make([]signalbox.Need, n)
	for i := range list {
		list[i] = signalbox.Need{Resource: d.Text(), N: int(d.Int())}
	}
	return &list
}

func spentOf(d *Reader) signalbox.Spent {
	return signalbox.Spent{InputTokens: d.Int(), OutputTokens: d.Int(), NanoUSD: d.Int()}
}

func requeues(p *Packer, list *[]signalbox.Requeue) {
	if list == nil {
		p.Int(0)
		return
	}
	p.Int(int64(len(*list)))
	for _, r := range *list {
		p.Texts(string(r.Kind), r.Agent, r.Message)
		p.Times(r.ClaimedAt, r.At)
	}
}

func requeuesOf(d *Reader) *[]signalbox.Requeue {
	n := d.count(signalbox.MaxRequeues)
	if n == 0 {
		return nil
	}
	list := make([]signalbox.Requeue, n)
	for i := range list {
		list[i] = signalbox.Requeue{Kind: signalbox.EventKind(d.Text()), Agent: d.Text(), Message: d.Text(), ClaimedAt: d.Time(), At: d.Time()}
	}
	return &list
}

func stateOf(d *Reader) signalbox.State {
	n := d.Int()
	if n < 1 || n >= int64(len(states)) {
		d.Bad = true
		return ""
	}
	return states[n]
}
