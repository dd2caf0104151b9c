// Package figures shows what a benchmark measured: a table on standard output,
// and a file of JSON where one is asked for.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// Figure is one line of the table.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"` // nil: there is no target
	Note   string  `json:"note,omitempty"`
}

// Show prints the table under a line that says what machine it is of, and more
// if there is more to say. The values have that many decimals. Where file is
// not "" it writes the figures into it as well.
func Show(all []Figure, decimals int, more, file string) error {
	if more != "" {
		more = ", " + more
	}
	fmt.Printf("%d CPUs, %s/%s, %s%s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), more)
	fmt.Println("| figure | value | target | met |")
	fmt.Println("|---|---|---|---|")
	for _, f := range all {
		fmt.Printf("| %s | %.*f %s | %s | %s |\n", f.title(), decimals, f.Value, f.Unit, f.Target, f.verdict())
	}
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func (f Figure) title() string {
	if f.Note == "" {
		return f.Name
	}
	return f.Name + " (" + f.Note + ")"
}

func (f Figure) verdict() string {
	switch {
	case f.Met == nil:
		return ""
	case *f.Met:
		return "yes"
	}
	return "**no**"
}
