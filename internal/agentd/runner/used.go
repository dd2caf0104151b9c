package runner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// OverBudget is the error type of a run that has used up its budget.
const OverBudget = "budget"

// Price is what a model costs, in US dollars for 1,000,000 tokens.
type Price struct {
	Input, Output         float64 // 0 or more
	CacheRead, CacheWrite float64 // for input that the provider's cache supplied or stored
}

// Prices are the prices of models, by name or pattern (signalbox.MatchTool). If several patterns
// match, the longest one counts.
type Prices map[string]Price

// of returns the price of a model that has these names.
func (p Prices) of(names ...string) (Price, bool) {
	patterns := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	for _, pattern := range patterns {
		if slices.ContainsFunc(names, func(name string) bool { return signalbox.MatchTool(pattern, name) }) {
			return p[pattern], true
		}
	}
	return Price{}, false
}

// check refuses invalid prices.
func (p Prices) check() error {
	for _, model := range slices.Sorted(maps.Keys(p)) {
		for _, usd := range []float64{p[model].Input, p[model].Output, p[model].CacheRead, p[model].CacheWrite} {
			if !(usd >= 0 && usd <= signalbox.MaxRunUSD) {
				return fmt.Errorf("agent.prices: %s costs %v: 0 to %d US dollars for 1,000,000 tokens", clip(model), usd, signalbox.MaxRunUSD)
			}
		}
	}
	return nil
}

// tokens are the counts of one or several answers.
type tokens struct{ input, cacheRead, cacheWrite, output count }

// each combines every count with the corresponding one of o.
func (t tokens) each(o tokens, f func(a, b count) count) tokens {
	return tokens{f(t.input, o.input), f(t.cacheRead, o.cacheRead), f(t.cacheWrite, o.cacheWrite), f(t.output, o.output)}
}

func larger(a, b count) count { return max(a, b) }

// since returns t minus an earlier count, or t if the counter was reset.
func (t tokens) since(before tokens) tokens {
	if t.each(before, larger) != t {
		return t
	}
	return t.each(before, func(a, b count) count { return a - b })
}

func (p Price) of(t tokens) float64 {
	usd := p.Input*float64(t.input) + p.CacheRead*float64(t.cacheRead) + p.CacheWrite*float64(t.cacheWrite) + p.Output*float64(t.output)
	return usd / 1e6
}

// Used is what a run has used so far.
type Used struct {
	Tokens api.TokenUsage // including tokens in the provider's cache
	USD    float64
	// Unpriced is a used model whose price is unknown, Uncounted one that does not report
	// tokens; "" for none.
	Unpriced, Uncounted string
}

// Spent is the usage that counts against a budget.
func (u Used) Spent() signalbox.Spent {
	said := signalbox.Result{InputTokens: u.Tokens.Input, OutputTokens: u.Tokens.Output, CostUSD: u.USD}
	return said.Spent()
}

// plus returns the sum of two programs' usage.
func (u Used) plus(o Used) Used {
	return Used{
		Tokens: api.TokenUsage{Input: u.Tokens.Input + o.Tokens.Input, Output: u.Tokens.Output + o.Tokens.Output}, USD: math.Round((u.USD+o.USD)*1e9) / 1e9,
		Unpriced: cmp.Or(u.Unpriced, o.Unpriced), Uncounted: cmp.Or(u.Uncounted, o.Uncounted),
	}
}

// Over says why a run may not continue, "" if it may.
func (u Used) Over(b signalbox.Budget) string {
	switch used := u.Spent(); {
	case b == (signalbox.Budget{}):
	case b.NanoUSD > 0 && used.NanoUSD >= b.NanoUSD:
		return fmt.Sprintf("spent %s of its budget of %s (%s tokens)", dollars(u.USD), dollars(b.USD()), grouped(used.Tokens()))
	case b.Over(used):
		return fmt.Sprintf("spent %s of its budget of %s tokens", grouped(used.Tokens()), grouped(b.Tokens))
	case u.Uncounted != "":
		return fmt.Sprintf("its budget cannot be kept: model %s does not say how many tokens it used; give the task no budget, or another model", clip(u.Uncounted))
	case b.NanoUSD > 0 && u.Unpriced != "":
		return fmt.Sprintf("its budget of %s cannot be kept: it is not known what model %s costs; %s", dollars(b.USD()), clip(u.Unpriced), priceCure)
	}
	return ""
}

func sum(u api.TokenUsage) int64 { return u.Input + u.Output }

const priceCure = "set a price in agent.prices of this agent, or a budget in tokens"

// dollars formats an amount with cents, or with more digits if it is below a cent.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return "$" + strconv.FormatFloat(usd, 'f', -1, 64)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// grouped formats a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// meter sums the usage of the models' answers.
type meter struct {
	prices  Prices
	asked   string           // the task's model, "" for the CLI's own
	budget  signalbox.Budget // of the run
	bounded bool             // the CLI itself enforces the budget in dollars
	before  usage            // the CLI's own count at the start of this run
	answers map[string]usage
}

type usage struct {
	tokens
	usd float64
}

// cost returns the cost of a model's tokens.
func (m *meter) cost(model string, t tokens) (usd float64, known bool) {
	p, ok := m.prices.of(model, m.asked)
	return p.of(t), ok || t == (tokens{})
}

// add counts an answer once, even if it is reported several times or in parts. usd is the cost
// that the CLI reports, 0 if it reports none.
//
// An answer without any tokens marks its model as one that does not report them.
func (m *meter) add(u *Used, id, model string, t tokens, usd float64) {
	was := m.answers[id]
	now := usage{tokens: t.each(was.tokens, larger), usd: max(usd, was.usd)}
	if !(usd > 0) {
		cost, known := m.cost(model, now.tokens)
		if now.usd = cost; !known && !m.bounded {
			u.Unpriced = m.name(model)
		}
	}
	if now.tokens == (tokens{}) {
		u.Uncounted = m.name(model)
	}
	if m.answers == nil {
		m.answers = map[string]usage{}
	}
	m.answers[id] = now
	n, before := now.tokens.usage(), was.tokens.usage()
	u.Tokens.Input += n.Input - before.Input
	u.Tokens.Output += n.Output - before.Output
	u.USD = math.Round((u.USD+now.usd-was.usd)*1e9) / 1e9
}

func (m *meter) name(model string) string { return cmp.Or(model, m.asked, "(the CLI's own)") }

// usage converts the tokens for a report.
func (t tokens) usage() api.TokenUsage {
	return api.TokenUsage{Input: int64(t.input + t.cacheRead + t.cacheWrite), Output: int64(t.output)}
}

// total replaces the sum by the CLI's own count, unless the sum is larger.
func (m *meter) total(u *Used, all usage) {
	now := all.tokens.since(m.before.tokens).usage()
	if sum(now) < sum(u.Tokens) {
		return
	}
	u.Tokens = now
	usd := all.usd
	if usd >= m.before.usd {
		usd -= m.before.usd
	}
	if usd > 0 && !math.IsInf(usd, 0) {
		u.USD, u.Unpriced = usd, ""
	}
}

// spent counts an answer, like add.
func (t *trouble) spent(id, model string, n tokens, usd float64) {
	t.meter.add(&t.heard.Used, id, model, n, usd)
}

// asks records that the model is or will be asked again: above the budget the run ends.
func (t *trouble) asks() {
	if why := t.heard.Used.Over(t.meter.budget); why != "" {
		t.text, t.hopeless = why, true
		t.heard.ErrType, t.heard.Limit, t.heard.Patience = OverBudget, nil, 0
	}
}

// CheckBudget refuses a budget that cannot be enforced for a model; "" is the CLI's own.
func (b commonRunner) CheckBudget(budget signalbox.Budget, model string) error {
	if _, ok := b.opt.Prices.of(model); ok || budget.NanoUSD == 0 {
		return nil
	}
	which := "model " + strconv.Quote(clip(model))
	if model == "" {
		which = "its CLI's own model"
	}
	return fmt.Errorf("a budget in US dollars cannot be kept: this %s agent does not know what %s costs; %s", b.kind, which, priceCure)
}
