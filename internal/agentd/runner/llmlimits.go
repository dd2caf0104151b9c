package runner

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// headerWindows are the limits that a model's endpoint reports in the headers of an
// answer, in the vendor's format.
func headerWindows(h http.Header, now time.Time) (list []api.AccountWindow) {
	for _, name := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		for _, form := range [][3]string{
			{"anthropic-ratelimit-" + name + "-limit", "anthropic-ratelimit-" + name + "-remaining", "anthropic-ratelimit-" + name + "-reset"},
			{"x-ratelimit-limit-" + name, "x-ratelimit-remaining-" + name, "x-ratelimit-reset-" + name},
		} {
			most, err := strconv.ParseFloat(h.Get(form[0]), 64)
			left, lerr := strconv.ParseFloat(h.Get(form[1]), 64)
			if err == nil && lerr == nil && most > 0 {
				list = addWindow(list, api.AccountWindow{Name: strings.ReplaceAll(name, "-", "_"), UsedPercent: 100 * (1 - left/most), ResetsAt: headerTime(h.Get(form[2]), now)})
			}
		}
	}
	for _, w := range [][2]string{{"5h", "five_hour"}, {"7d", "seven_day"}} {
		of := "anthropic-ratelimit-unified-" + w[0]
		if used, err := strconv.ParseFloat(h.Get(of+"-utilization"), 64); err == nil {
			list = addWindow(list, api.AccountWindow{Name: w[1], UsedPercent: 100 * used, ResetsAt: headerTime(h.Get(of+"-reset"), now)})
		}
	}
	return list
}

// headerTime parses when a limit is reset: a point in time, seconds since 1970, or a
// duration, as text or in seconds.
func headerTime(s string, now time.Time) *time.Time {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return epoch(float64(at.Unix()))
	}
	var wait time.Duration
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(n >= 0 && n <= 1e9) {
			return epoch(n)
		}
		wait = time.Duration(n * float64(time.Second))
	} else if wait, err = time.ParseDuration(s); err != nil {
		return nil
	}
	if wait < 0 || wait > 366*24*time.Hour {
		return nil
	}
	at := now.Add(wait).UTC()
	return &at
}

// headers takes the headers of an answer, before its body is read.
func (r *llmRun) headers(status int, h http.Header) {
	now := r.clock()
	r.refusedAt = nil
	if wait, ok := wire.RetryAfter(h); ok && status == http.StatusTooManyRequests {
		at := now.Add(wait).UTC()
		r.refusedAt = &at
	}
	for _, w := range headerWindows(h, now) {
		r.window(w)
	}
	r.tell()
}

func (r *llmRun) tell() {
	if r.task.Hear != nil {
		r.task.Hear(r.heard)
	}
}

// limit records the limit that ended the run, if any.
func (r *llmRun) limit(e *llm.ModelError) {
	l := api.AgentLimit{Source: byEvent, Text: firstText(e.Message, e.Error())}
	switch {
	case e.Status == http.StatusUnauthorized:
		r.limited(refusedLogin, l)
	case e.Status == 529 || e.Code == "overloaded_error":
		r.limited(overloaded, l)
	case e.Status == http.StatusTooManyRequests || e.Code == "rate_limit_error" || e.Code == "rate_limit_exceeded" || e.Code == "insufficient_quota":
		for _, w := range r.heard.Windows {
			if w.UsedPercent >= 100 && w.ResetsAt != nil && (l.ResetsAt == nil || w.ResetsAt.After(*l.ResetsAt)) {
				l.Window, l.ResetsAt, l.Source = w.Name, w.ResetsAt, byHeader
			}
		}
		if r.refusedAt != nil {
			l.ResetsAt, l.Source = r.refusedAt, byHeader
		}
		if at, ok := resetTime(e.Message, r.clock(), time.UTC); ok && l.ResetsAt == nil {
			l.ResetsAt, l.Source = &at, byText
		}
		r.limited(usageLimit, l)
	}
}

// modelFailure is the outcome of a run that an error of its model's endpoint
// ended.
func (r *llmRun) modelFailure(e *llm.ModelError, o Outcome) Outcome {
	r.limit(e)
	r.tell()
	o.ErrType, o.ErrMessage, o.Limit = cmp.Or(r.heard.ErrType, "model_error"), e.Error(), r.heard.Limit
	return o
}
