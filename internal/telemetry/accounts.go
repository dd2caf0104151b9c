package telemetry

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gates"
)

// maxAccounts bounds the series of accounts and of gates, whose names come from agents: accounts that are not
// open come first, then by name.
const maxAccounts = 100

// accountGauges reads the accounts when it is scraped.
type accountGauges struct {
	engine                                                 *engine.Engine
	open, signedOut, closed, used, parked, waiting, timers *prometheus.Desc
	gate                                                   *prometheus.Desc
}

func newAccountGauges(e *engine.Engine) *accountGauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &accountGauges{
		engine:    e,
		open:      desc("signalbox_account_open", "1 if the account is open, 0 if it is closed, being tried or signed out; of more than 100 accounts those that are not open, and the first by name.", "account"),
		signedOut: desc("signalbox_account_signed_out", "1 if the login of the account was refused: a person must log in.", "account"),
		closed:    desc("signalbox_account_closed_until_seconds", "Seconds until a closed account is tried again; 0 if it is not closed, or until someone opens it.", "account"),
		used:      desc("signalbox_account_used_percent", "How much of a limit of its provider an account has used up, as agents heard it last.", "account", "window"),
		parked:    desc("signalbox_account_parked_tasks", "Parked tasks that go on when the account is open.", "account"),
		waiting:   desc("signalbox_account_waiting_tasks", "Pending tasks that cannot start because the account is not open.", "account"),
		timers:    desc("signalbox_parked_tasks", "Parked tasks, by what they wait for: account, time.", "gate"),
		gate:      desc("signalbox_gate_closed", "1 for each gate that is closed or being tried, at most 100: accounts, agents that failed, and times until which tasks are parked (without a name).", "kind", "name"),
	}
}

// Describe implements prometheus.Collector.
func (g *accountGauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.open, g.signedOut, g.closed, g.used, g.parked, g.waiting, g.timers, g.gate} {
		c <- d
	}
}

// Collect implements prometheus.Collector. If the store does not answer there are no figures.
func (g *accountGauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	now, err := gates.Read(ctx, g.engine, nil)
	if err != nil {
		return
	}
	all := now.Accounts
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	at := map[signalbox.GateKind]int{signalbox.GateAccount: 0, signalbox.GateTime: 0}
	for i := range now.Parked {
		at[now.Parked[i].Parking.Kind]++
	}
	for kind, n := range at {
		set(g.timers, float64(n), string(kind))
	}
	list := gates.List(now)
	for i := range list[:min(len(list), maxAccounts)] {
		set(g.gate, 1, string(list[i].Kind), list[i].Name)
	}
	slices.SortStableFunc(all, func(a, b signalbox.Account) int {
		return btoi(a.State == signalbox.AccountOpen) - btoi(b.State == signalbox.AccountOpen)
	})
	for i := range all[:min(len(all), maxAccounts)] {
		a := &all[i]
		set(g.open, float64(btoi(a.State == signalbox.AccountOpen)), a.Name)
		set(g.signedOut, float64(btoi(a.State == signalbox.AccountSignedOut)), a.Name)
		until := 0.0
		if a.State == signalbox.AccountClosed && !a.Until.IsZero() {
			until = max(0, a.Until.Sub(g.engine.Now()).Seconds())
		}
		set(g.closed, until, a.Name)
		load := now.Loads[signalbox.GateRef{Kind: signalbox.GateAccount, Name: a.Name}]
		set(g.parked, float64(load.Parked), a.Name)
		set(g.waiting, float64(load.Waiting), a.Name)
		sent := map[string]bool{} // a duplicate figure invalidates the whole scrape
		for _, w := range a.Windows {
			if !sent[w.Name] {
				sent[w.Name] = true
				set(g.used, w.UsedPercent, a.Name, w.Name)
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
