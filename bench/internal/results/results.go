// Package results defines the output of the benchmarks: a JSON file with each figure,
// round by round. Medians, spreads, ratios and whether a target is met are computed
// from that.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Series has the values of one side for a figure, round by round.
type Series struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// Target is measure.Target.
type Target struct {
	Of      string  `json:"of,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
}

// Figure is one thing that was measured.
type Figure struct {
	ID       string   `json:"id"`
	Duel     string   `json:"duel"` // to measure it again: -only DUEL
	Group    string   `json:"group"`
	Title    string   `json:"title"`
	Unit     string   `json:"unit"`
	Lower    bool     `json:"lower_is_better,omitempty"`
	Delta    bool     `json:"difference,omitempty"` // difference to the peer instead of a ratio
	Detail   bool     `json:"detail,omitempty"`
	Measured string   `json:"measured"` // the day
	Ours     Series   `json:"ours"`
	Peers    []Series `json:"peers,omitempty"`
	Limit    *Series  `json:"limit,omitempty"`
	Target   Target   `json:"target,omitzero"`
}

// Machine describes the machine of the measurement.
type Machine struct {
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu"`
	System string `json:"system"`
	Go     string `json:"go"`
	Disk   string `json:"disk"`
	// Versions of the peers and of the servers.
	Versions map[string]string `json:"versions"`
}

// File is the whole file.
type File struct {
	Machine Machine `json:"machine"`
	// Whole is the day on which everything was measured in one run; "" if some
	// figures are from earlier runs.
	Whole   string   `json:"whole,omitempty"`
	Figures []Figure `json:"figures"`
}

// Read reads a file; one that does not exist is empty.
func Read(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Write writes it.
func (f File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Keep removes the figures that a complete run did not measure, because they no longer
// exist.
func (f *File) Keep(seen []Figure, day string) {
	f.Figures = slices.DeleteFunc(f.Figures, func(o Figure) bool {
		return !slices.ContainsFunc(seen, func(n Figure) bool { return n.ID == o.ID })
	})
	f.Whole = day
}

// Merge replaces figures of an earlier run with the same ones of this run, and adds new
// ones after the last one of their group.
func (f *File) Merge(now []Figure) {
	for _, n := range now {
		if i := slices.IndexFunc(f.Figures, func(o Figure) bool { return o.ID == n.ID }); i >= 0 {
			f.Figures[i] = n
			continue
		}
		at := len(f.Figures)
		for i, o := range f.Figures {
			if o.Group == n.Group {
				at = i + 1
			}
		}
		f.Figures = slices.Insert(f.Figures, at, n)
	}
}
