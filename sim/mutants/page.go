//go:build mutants

package mutants

import (
	"fmt"
	"strings"
)

const pageHead = `# Mutants

A test is worth what it catches. Each row is a bug made by hand, at least one for each fault that was seen in the
systems from which this one grew and in comparable systems. Each bug was put into the sources, and the tests of one
package were run. The shipped code has none of these bugs: a mutant is a snippet and its replacement, in
[sim/mutants](../../sim/mutants), and the go tool gets the changed file as an overlay.

` + "`make mutants`" + ` runs all of them again, fails if one is not caught, and writes this page. First the same tests run
without a bug, and must pass. A mutant that does not compile, or that hangs without being meant to, is not caught. The
time is that of the tests until one failed, without the build, on the machine and under the load of that day.

`

// Page is docs/development/mutants.md.
func Page(results []Result) string {
	var b strings.Builder
	b.WriteString(pageHead)
	caught := 0
	for _, r := range results {
		if r.Caught {
			caught++
		}
	}
	fmt.Fprintf(&b, "%d of %d are caught. They stand for %d faults.\n\n", caught, len(results), len(Faults))
	b.WriteString("| mutant | what it does wrong | where | stands for | caught by | after |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		by, after := "**nothing**", ""
		if r.Caught {
			by, after = fmt.Sprintf("`%s` %s", where(r.Package), test(r.By)), fmt.Sprintf("%.1f s", r.Seconds)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s |\n", r.Name, r.Text, r.File, r.Fault, by, after)
	}
	b.WriteString("\n## The faults\n\n| fault | what went wrong |\n|---|---|\n")
	for _, f := range Faults {
		fmt.Fprintf(&b, "| %s | %s |\n", f.ID, f.Text)
	}
	return b.String()
}

// where names a package like docs/development/incidents.md.
func where(pkg string) string {
	if pkg == "." {
		return "signalbox"
	}
	return pkg
}

// test is the name of a test without that of the case.
func test(name string) string {
	parts := strings.SplitN(name, "/", 4)
	if len(parts) > 3 { // a rule of a suite: its chapter is enough
		parts = parts[:3]
	}
	return strings.Join(parts, "/")
}
