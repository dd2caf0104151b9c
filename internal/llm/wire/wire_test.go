package wire

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

var fit = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func named(names ...string) *Names {
	var tools []llm.Tool
	for _, n := range names {
		tools = append(tools, llm.Tool{Name: n})
	}
	return NewNames(tools)
}

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z._/]{1,6}`), rapid.StringMatching(`[a-z_]{60,70}`))
		list := rapid.SliceOfDistinct(odd, rapid.ID[string]).Draw(t, "names")
		n := named(list...)
		seen := map[string]string{}
		for _, name := range list {
			v := n.Vendor(name)
			if !fit.MatchString(v) {
				t.Fatalf("%q became %q", name, v)
			}
			if other, ok := seen[v]; ok {
				t.Fatalf("%q and %q both became %q", name, other, v)
			}
			seen[v] = name
			if n.Tool(v) != name {
				t.Fatalf("%q became %q, and back %q", name, v, n.Tool(v))
			}
			if fit.MatchString(name) && v != name {
				t.Fatalf("%q is valid and became %q", name, v)
			}
		}
		slices.Reverse(list)
		again := named(list...)
		for v, name := range seen {
			if again.Vendor(name) != v {
				t.Fatalf("%q depends on the order", name)
			}
		}
	})
}

// TestNamesThatPretend: a tool that has the name that another tool's is
// mapped to does not replace that tool.
func TestNamesThatPretend(t *testing.T) {
	v := named("a.b").Vendor("a.b")
	n := named("a.b", v)
	if n.Vendor(v) != v || n.Tool(v) != v || n.Vendor("a.b") == v || n.Tool(n.Vendor("a.b")) != "a.b" {
		t.Errorf("%q and %q", n.Vendor("a.b"), n.Vendor(v))
	}
}

func TestNamesOfRemovedTools(t *testing.T) {
	n := named("other")
	if got := n.Vendor("gone"); got != "gone" || !fit.MatchString(n.Vendor("gone.too")) || n.Tool("never") != "never" {
		t.Errorf("%q %q", got, n.Vendor("gone.too"))
	}
}

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"call_abc", "toolu_01AbC-x", "", "functions.search:0", "functions.search:1", strings.Repeat("x", 41), strings.Repeat("x", 42), "ä"} {
		got := ID(id)
		if !fit.MatchString(got) || len(got) > 40 || seen[got] || got != ID(id) {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
	if ID("call_abc") != "call_abc" {
		t.Error("a valid id was changed")
	}
}

func TestScrub(t *testing.T) {
	got := Scrub("  key k1 and k1, pass p2\xff"+strings.Repeat("ä", 4000), "k1", "", "p2")
	if strings.Contains(got, "k1") || strings.Contains(got, "p2") || len(got) > 2100 || !strings.HasPrefix(got, "key [secret] and [secret], pass [secret]\uFFFD") {
		t.Errorf("%.80s (%d bytes)", got, len(got))
	}
}

func TestGatherBoundsCalls(t *testing.T) {
	g := NewGather(named(), nil)
	var err error
	n := 0
	for ; err == nil && n < 5000; n++ {
		_, err = g.Begin(int64(n))
	}
	if err == nil || n > 1100 {
		t.Errorf("%d calls, %v", n, err)
	}
	if err := g.Text("not heard by anyone"); err != nil || g.Message().Text != "not heard by anyone" {
		t.Errorf("%v %+v", err, g.Message())
	}
}

// TestGatherBoundsContent: the content becomes part of the conversation, so
// it is limited.
func TestGatherBoundsContent(t *testing.T) {
	g := NewGather(named(), nil)
	c, err := g.Begin(0)
	if err != nil {
		t.Fatal(err)
	}
	mib := strings.Repeat("x", 1<<20)
	for range 4 {
		if err := errors.Join(g.Text(mib), g.Arguments(c, mib)); err != nil {
			t.Fatal(err)
		}
	}
	if g.Text("x") == nil || g.Arguments(c, "x") == nil {
		t.Error("the stream does not end")
	}
	e := broken(t.Context(), g.Text("x"))
	if m := g.Message(); len(m.Text) != 4<<20 || !strings.Contains(e.Error(), "8 MiB") || strings.Contains(e.Error(), "base URL") {
		t.Errorf("%d bytes, %v", len(m.Text), e)
	}
}
