package view

import (
	"cmp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gates"
)

// Account is the API form of an account, without the fields that are counted.
func Account(a *signalbox.Account) api.Account {
	v := api.Account{
		Name: a.Name, Kind: a.Kind, Login: a.Login, State: string(cmp.Or(a.State, signalbox.AccountOpen)), Text: a.String(),
		Reason: a.Reason, Window: a.Window, Source: a.Source, Since: Time(a.Since), Until: Time(a.Until), HeardAt: Time(a.HeardAt), Agents: []string{},
	}
	for _, w := range a.Windows {
		v.Windows = append(v.Windows, api.AccountWindow{Name: w.Name, UsedPercent: w.UsedPercent, ResetsAt: Time(w.ResetsAt)})
	}
	return v
}

// WaitingFor is the gate that a task waits at; nil for none.
func WaitingFor(w *signalbox.ClosedGate) *api.WaitingFor {
	if w == nil {
		return nil
	}
	return &api.WaitingFor{Kind: string(w.Kind), Name: w.Name, Text: w.Text, Until: Time(w.Until), Since: Time(w.Since)}
}

// parkedAt is the gate of a parked task at the time of parking.
func parkedAt(t *signalbox.Task) *api.WaitingFor {
	if t.State != signalbox.Parked {
		return nil
	}
	w := signalbox.ClosedGate{Gate: t.Parking.Gate, Since: t.Parking.At}
	w.Text = w.String()
	return WaitingFor(&w)
}

// Gates returns the gates that a caller may see.
func Gates(all []gates.Closed, who signalbox.Principal) []api.ClosedGate {
	out := []api.ClosedGate{}
	for i := range all {
		if g := &all[i]; g.VisibleTo(who) {
			out = append(out, api.ClosedGate{
				Kind: string(g.Kind), Name: g.Name, State: g.State, Text: g.Text, Since: Time(g.Since), Until: Time(g.Until), Source: g.Source,
				Waiting: g.Waiting, Parked: g.Parked, Cure: g.Cure,
			})
		}
	}
	return out
}
