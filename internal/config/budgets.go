package config

import (
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// decodeBudget decodes one budget, such as {usd: 5, tokens: 2000000}.
func decodeBudget(to *signalbox.Budget) func(*file, string, conffile.Pair) {
	return func(f *file, key string, pair conffile.Pair) { f.budget(pair.Value, key, to) }
}

// decodeBudgets decodes budgets by name.
func decodeBudgets(section, want string, valid func(string) bool, to *map[string]signalbox.Budget) func(*file, string, conffile.Pair) {
	return func(f *file, prefix string, pair conffile.Pair) {
		if pair.Value.Form == conffile.Nothing {
			return
		}
		if pair.Value.Form != conffile.Section {
			f.add(pair.Value.Line, prefix, "want a section of "+section+" and their budgets, got "+f.value(pair.Value).Shown())
			return
		}
		for one := range f.once(pair.Value, prefix+".") {
			if one.Key != signalbox.AnyBudget && !valid(one.Key) {
				f.add(one.Line, prefix+"."+one.Key, want)
				continue
			}
			var b signalbox.Budget
			if f.budget(one.Value, prefix+"."+one.Key, &b) {
				if *to == nil {
					*to = map[string]signalbox.Budget{}
				}
				(*to)[one.Key] = b
			}
		}
	}
}

func (f *file) budget(n node, key string, to *signalbox.Budget) bool {
	var usd, tokens signalbox.Budget
	ok := f.entry(n, key, schema{budgetFigure("usd", &usd), budgetFigure("tokens", &tokens)})
	if ok {
		*to = usd.Or(tokens)
	}
	return ok
}

func budgetFigure(key string, to *signalbox.Budget) setting {
	want := "US dollars from 0.000000001 to " + strconv.Itoa(signalbox.MaxBudgetUSD) + ", or 0 for no bound"
	if key == "tokens" {
		want = "a whole number of tokens from 1 to " + strconv.Itoa(signalbox.MaxBudgetTokens) + ", or 0 for no bound"
	}
	return typed(key, want, to, func(v value) (b signalbox.Budget, ok bool) {
		text, ok := v.Number()
		if !ok {
			return b, false
		}
		var usd float64
		var tokens int64
		var err error
		if key == "usd" {
			usd, err = strconv.ParseFloat(text, 64)
		} else {
			tokens, err = strconv.ParseInt(text, 10, 64)
		}
		if err == nil {
			b, err = signalbox.ParseBudget("", usd, tokens)
		}
		return b, err == nil
	})
}

// validOwner accepts an e-mail address or the key of an owner.
func validOwner(s string) bool {
	return signalbox.Printable(s) && strings.TrimSpace(s) == s && strings.ContainsAny(s, "@:")
}
