package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Median returns the median, for an even number the mean of the two middle values.
func (s Series) Median() float64 {
	v := slices.Sorted(slices.Values(s.Values))
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Spread returns the minimum and the maximum.
func (s Series) Spread() (least, most float64) { return slices.Min(s.Values), slices.Max(s.Values) }

// side finds a series of the figure by its name: a peer or the limit.
func (f Figure) side(name string) *Series {
	for i, p := range f.Peers {
		if p.Name == name {
			return &f.Peers[i]
		}
	}
	if f.Limit != nil && f.Limit.Name == name {
		return f.Limit
	}
	return nil
}

// Ratio returns how many times as good as another side ours is: the median of the
// rounds' ratios if both have the same rounds, else the ratio of the medians.
func (f Figure) Ratio(to Series) float64 {
	if len(to.Values) != len(f.Ours.Values) {
		return f.better(f.Ours.Median(), to.Median())
	}
	var each Series
	for i, v := range f.Ours.Values {
		each.Values = append(each.Values, f.better(v, to.Values[i]))
	}
	return each.Median()
}

func (f Figure) better(ours, theirs float64) float64 {
	if f.Lower {
		return theirs / ours
	}
	return ours / theirs
}

// Difference returns ours minus another side, the median of the rounds.
func (f Figure) Difference(to Series) float64 {
	if len(to.Values) != len(f.Ours.Values) {
		return f.Ours.Median() - to.Median()
	}
	var each Series
	for i, v := range f.Ours.Values {
		each.Values = append(each.Values, v-to.Values[i])
	}
	return each.Median()
}

// Verdict returns the target and whether it was reached. Both are empty without a
// target.
func (f Figure) Verdict() (target string, met bool) {
	t := f.Target
	other := f.side(t.Of)
	switch {
	case t == (Target{}) || t.Of != "" && other == nil:
		return "", false
	case t.Of == "" && t.AtMost > 0:
		return "≤ " + Amount(t.AtMost, f.Unit), f.Ours.Median() <= t.AtMost
	case t.Of == "":
		return "≥ " + Amount(t.AtLeast, f.Unit), f.Ours.Median() >= t.AtLeast
	case t.AtMost > 0:
		return fmt.Sprintf("≤ %s above %s", Amount(t.AtMost, f.Unit), t.Of), f.Difference(*other) <= t.AtMost
	case f.Lower && t.AtLeast < 1:
		return fmt.Sprintf("≤ %s× %s", short(1/t.AtLeast), t.Of), f.Ratio(*other) >= t.AtLeast
	}
	return fmt.Sprintf("≥ %s× %s", short(t.AtLeast), t.Of), f.Ratio(*other) >= t.AtLeast
}

// RoundsMet returns in how many rounds the target was met, and the number of rounds.
// Both are 0 if the sides had different rounds.
func (f Figure) RoundsMet() (met, all int) {
	other := f.side(f.Target.Of)
	if other != nil && len(other.Values) != len(f.Ours.Values) {
		return 0, 0
	}
	for i, v := range f.Ours.Values {
		one := Figure{Unit: f.Unit, Lower: f.Lower, Delta: f.Delta, Target: f.Target, Ours: Series{Name: f.Ours.Name, Values: []float64{v}}}
		if other != nil {
			one.Peers = []Series{{Name: other.Name, Values: other.Values[i : i+1]}}
		}
		if _, ok := one.Verdict(); ok {
			met++
		}
	}
	return met, len(f.Ours.Values)
}

func short(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'g', -1, 64) }

// Amount formats a value for people with three significant digits.
func Amount(v float64, unit string) string {
	if unit == "/s" || unit == "%" || unit == "" {
		return Number(v) + unit
	}
	return Number(v) + " " + unit
}

// Number formats a value with three significant digits and thousands separators.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–" // a ratio to zero
	case a >= 1000:
		step := math.Pow(10, math.Floor(math.Log10(a))-2)
		return thousands(int64(math.Round(v/step) * step))
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1 || a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
