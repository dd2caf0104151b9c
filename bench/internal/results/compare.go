package results

import (
	"fmt"
	"strings"
)

// AddRound appends the values of another run, by figure and side.
func (f *File) AddRound(more File) {
	for _, n := range more.Figures {
		i := f.index(n.ID)
		if i < 0 {
			f.Figures = append(f.Figures, n)
			continue
		}
		o := &f.Figures[i]
		o.Ours.Values = append(o.Ours.Values, n.Ours.Values...)
		for k := range o.Peers {
			if p := n.side(o.Peers[k].Name); p != nil {
				o.Peers[k].Values = append(o.Peers[k].Values, p.Values...)
			}
		}
		if o.Limit != nil && n.Limit != nil {
			o.Limit.Values = append(o.Limit.Values, n.Limit.Values...)
		}
	}
}

func (f *File) index(id string) int {
	for i := range f.Figures {
		if f.Figures[i].ID == id {
			return i
		}
	}
	return -1
}

// itself returns the figure's own series, or the difference for a figure that is a
// difference to a side.
func (f Figure) itself() Series {
	if !f.Delta || len(f.Peers) == 0 {
		return f.Ours
	}
	out := Series{Name: f.Ours.Name}
	for i, v := range f.Ours.Values {
		if i < len(f.Peers[0].Values) {
			out.Values = append(out.Values, v-f.Peers[0].Values[i])
		}
	}
	return out
}

// Compare returns a table of the figures in both files: the medians, and how many times
// as good the newer file is, as the median of the rounds' ratios with the minimum and
// maximum.
func Compare(old, now File) string {
	var s strings.Builder
	s.WriteString("| figure | old | new | new compared with old | least and most | `-only` |\n|---|---|---|---|---|---|\n")
	for _, n := range now.Figures {
		i := old.index(n.ID)
		if i < 0 {
			continue
		}
		was, is := old.Figures[i].itself(), n.itself()
		if len(was.Values) == 0 || len(is.Values) == 0 {
			continue
		}
		var each Series
		for k := range min(len(was.Values), len(is.Values)) {
			each.Values = append(each.Values, n.better(is.Values[k], was.Values[k]))
		}
		least, most := each.Spread()
		fmt.Fprintf(&s, "| %s | %s | %s | %.2f× | %.2f to %.2f | `%s` |\n", n.Title, Amount(was.Median(), n.Unit), Amount(is.Median(), n.Unit), each.Median(), least, most, n.ID)
		if of := n.side(n.Target.Of); of != nil && !n.Delta {
			if before := old.Figures[i].side(n.Target.Of); before != nil {
				fmt.Fprintf(&s, "| 〃, compared with %s | %.2f× | %.2f× | | | |\n", of.Name, old.Figures[i].Ratio(*before), n.Ratio(*of))
			}
		}
	}
	return s.String()
}
