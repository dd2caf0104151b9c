package execution

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
)

// latestReset bounds how far ahead a reported reset may be, so that it can be stored.
const latestReset = 366 * 24 * time.Hour

// AccountNews is what an agent of a kind reports about its account. Its Name is "" if the agent reports no
// valid one.
func AccountNews(kind string, a *api.AgentAccount, now time.Time) accounts.News {
	if a == nil || !signalbox.ValidName(a.Name) {
		return accounts.News{}
	}
	n := accounts.News{Name: a.Name, Kind: kind, Login: clip(signalbox.Preview(a.Login), 100)}
	if a.AnsweredAt != nil {
		n.AnsweredAt = *a.AnsweredAt
	}
	for _, w := range a.Windows[:min(len(a.Windows), signalbox.MaxAccountWindows)] {
		if math.IsNaN(w.UsedPercent) || !signalbox.ValidName(w.Name) {
			continue
		}
		n.Windows = append(n.Windows, signalbox.AccountWindow{
			Name: w.Name, UsedPercent: min(max(w.UsedPercent, 0), 1000), ResetsAt: resetOf(w.ResetsAt, now),
		})
	}
	return n
}

func resetOf(at *time.Time, now time.Time) time.Time {
	if at == nil || at.IsZero() {
		return time.Time{}
	}
	earliest, latest := now.Add(-latestReset), now.Add(latestReset)
	switch {
	case at.Before(earliest):
		return earliest
	case at.After(latest):
		return latest
	}
	return at.UTC().Truncate(time.Millisecond)
}

// limitKinds are the error types of runs that ended at a limit.
var limitKinds = map[string]accounts.LimitKind{
	"usage_limit": accounts.Usage, "overloaded": accounts.Overloaded, "login_refused": accounts.Refused,
}

// limitOf is the limit at which a run ended; nil if it met none.
func limitOf(s *api.AgentTaskStatus, now time.Time) *accounts.Limit {
	if s.Limit == nil || s.Error == nil || limitKinds[s.Error.Type] == "" {
		return nil
	}
	l := s.Limit
	return &accounts.Limit{
		Kind: limitKinds[s.Error.Type], Window: clip(signalbox.Preview(l.Window), 64), ResetsAt: resetOf(l.ResetsAt, now),
		Source: clip(signalbox.Preview(l.Source), 16), Text: clip(SanitizeText(l.Text), signalbox.MaxGateText), Began: l.Began,
	}
}

// ReportAccount records what an agent reports about its account. It is stored soon. Mu is held.
func (b *Registry[A, R]) ReportAccount(a A, told *api.AgentAccount) {
	l := a.Base()
	n := AccountNews(l.Row.Kind, told, b.Engine.Now())
	if n.Name == "" {
		return
	}
	if l.Row.Account != n.Name {
		l.Row.Account, l.drained = n.Name, false
		l.Wake.Send()
		b.Engine.AgentChanged(l.Name)
	}
	b.news[l.Name] = n
	b.storeNews.Request()
}

func (b *Registry[A, R]) storeAccounts(ctx context.Context) error {
	b.Mu.Lock()
	news := b.news
	b.news = map[string]accounts.News{}
	b.Mu.Unlock()
	for _, agent := range slices.Sorted(maps.Keys(news)) {
		if err := b.Engine.ReportAccount(ctx, agent, news[agent]); err != nil {
			return err
		}
	}
	return nil
}
