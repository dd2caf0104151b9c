package conffile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"A": "one", "EMPTY": "", "B_2": "${A}"}[name]
	return v, ok
}

func TestExpand(t *testing.T) {
	for _, test := range []struct {
		in, want string
		used     bool
	}{
		{"", "", false},
		{"$A $ {A} {A}", "$A $ {A} {A}", false},
		{"x${A}y${EMPTY}z", "xoneyz", true},
		{"${B_2}", "${A}", true}, // values of variables are not expanded
		{"$${A} ${A}", "${A} one", true},
		{"${GONE:-two} ${EMPTY:-${A} ${A:-x} ${GONE:-}", "two ${A one ", true},
		{"${env:A}${keep.A}${keep.}", "one${keep.A}${keep.}", true},
	} {
		got, used, err := conffile.Expand(test.in, env, func(s string) bool { return strings.HasPrefix(s, "keep.") })
		if got != test.want || used != test.used || err != nil {
			t.Errorf("%q: %q %v %v, want %q", test.in, got, used, err, test.want)
		}
	}
	for in, want := range map[string]string{
		"${GONE}":          "the environment variable GONE is not set",
		"s3same ${A s3":    "a ${ has no end: want ${NAME}, or $${ for a ${ that stays",
		"${}":              "what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays",
		"${s3same-x}":      "what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays",
		"${keep.A} ${x y}": "what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays",
	} {
		if _, _, err := conffile.Expand(in, env, nil); err == nil || in != "${keep.A} ${x y}" && err.Error() != want {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestLines: each node has its line, in both formats.
func TestLines(t *testing.T) {
	for format, text := range map[conffile.Format]string{
		conffile.YAML: "a: 1\nb:\n  - x\n  - c: &c {d: true}\ne: *c\nf: |\n  x\n  y\n",
		conffile.JSON: "{\"a\": 1,\n\"b\": [\n\t\"x\",\n\t{\"c\": {\"d\": true}}],\n\"e\": {\"d\": true},\n\"f\": \"x\\ny\\n\"}",
	} {
		root, err := conffile.Parse([]byte(text), format)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		show(&b, root)
		const want = "{a@1:1@1 b@2:[x@3 {c@4:{d@4:true@4}}] e@5:{d@N:true@N} f@6:x\ny\n@6}"
		got := strings.ReplaceAll(b.String(), map[conffile.Format]string{conffile.YAML: "e@5:{d@4:true@4}", conffile.JSON: "e@5:{d@5:true@5}"}[format], "e@5:{d@N:true@N}")
		if got != want {
			t.Errorf("%s: %s\nwant %s", format, got, want)
		}
	}
}

func show(b *strings.Builder, n *conffile.Node) {
	switch n.Form {
	case conffile.List:
		for i, item := range n.Items {
			b.WriteString([]string{"[", " "}[min(i, 1)])
			show(b, item)
		}
		b.WriteString("]")
	case conffile.Section:
		for i, p := range n.Pairs {
			fmt.Fprintf(b, "%s%s@%d:", []string{"{", " "}[min(i, 1)], p.Key, p.Line)
			show(b, p.Value)
		}
		b.WriteString("}")
	default:
		fmt.Fprintf(b, "%s@%d", n.Text, n.Line)
	}
}

func TestSuggest(t *testing.T) {
	if got := conffile.Suggest("g", []string{"h", "default"}); got != "" {
		t.Errorf("a name without a common letter: %s", got)
	}
	known := []string{"queue.max_size", "addr", "concurrent"}
	for key, want := range map[string]string{
		"adr": ": did you mean addr?", "concurent": ": did you mean concurrent?", "max_size": ": did you mean queue.max_size?", "colour": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := conffile.Suggest(key, known); got != want {
			t.Errorf("%.20s: %q", key, got)
		}
	}
}

func TestProblems(t *testing.T) {
	var p conffile.Problems
	for range 3 {
		p = append(p, conffile.Problem{Where: "f:1", Key: "k", Text: "bad"})
	}
	if got := p.Error(); got != "3 problems in the configuration:\n  f:1: k: bad\n  f:1: k: bad\n  f:1: k: bad" {
		t.Error(got)
	}
	for range 200 {
		p = append(p, p[0])
	}
	if got := p.Error(); strings.Count(got, "\n") != 101 || !strings.HasSuffix(got, "\n  and 103 more") {
		t.Error(got)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Second: "1s", time.Millisecond: "1ms", 0: "0s"} {
		if got := conffile.Brief(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// FuzzParse looks for texts that make a parser panic or hang, and for JSON
// that is not written back as the same JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: &a [*a, *b]", "{\"a\": [1e400, \"\\ud800\"], \"a\": null}", "? a\n: b\n<<: {c: d}", "- !!x y\n- |\n  z", "\xff\xfe", ".inf: .nan", "a: 0o17\nb: 1_000\nc: 2001-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []conffile.Format{conffile.YAML, conffile.JSON} {
			root, err := conffile.Parse([]byte(text), format)
			var bad *conffile.Error
			if err != nil && !errors.As(err, &bad) {
				t.Errorf("%T: %v", err, err)
			}
			if root == nil || err != nil {
				continue
			}
			out, err := conffile.ToJSON(root, nil)
			if err != nil {
				continue
			}
			if again, err := conffile.Parse(out, conffile.JSON); err != nil || again == nil {
				t.Errorf("%q became %q: %v", text, out, err)
			}
		}
	})
}
