package resources_test

import (
	"reflect"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/resources"
)

var configured = map[string]signalbox.Resource{"db": {Capacity: 1}, "port": {Capacity: 3, Values: []string{"1", "2", "3"}}}

func TestFirstSaysWhatIsLacking(t *testing.T) {
	folder := signalbox.Exclusive("folder", "ab")
	holds := []signalbox.Hold{{Resource: "db", Agent: "a", N: 1}, {Resource: folder, Agent: "b", N: 1}, {Resource: "port", Agent: "c", N: 1, Values: []string{"2"}}}
	for name, test := range map[string]struct {
		needs  []signalbox.Need
		text   string
		holder string
	}{
		"all is free":   {needs: []signalbox.Need{{Resource: "port", N: 2}}},
		"nothing":       {},
		"a resource":    {[]signalbox.Need{{Resource: "port", N: 1}, {Resource: "db", N: 1}}, "It needs 1 of db, and 0 of 1 are free", "a"},
		"not enough":    {[]signalbox.Need{{Resource: "port", N: 3}}, "It needs 3 of port, and 2 of 3 are free", "c"},
		"a folder":      {[]signalbox.Need{{Resource: folder, N: 1}}, "b works in /src: queue-1", "b"},
		"gone by now":   {[]signalbox.Need{{Resource: "gpu", N: 1}}, "No resource gpu is configured any more", ""},
		"another place": {needs: []signalbox.Need{{Resource: signalbox.Exclusive("folder", "cd"), N: 1}}},
	} {
		l := resources.First(configured, test.needs, holds)
		if l == nil {
			if test.text != "" {
				t.Errorf("%s: nothing is lacking, want %q", name, test.text)
			}
			continue
		}
		text, _ := l.Texts("queue-1", "/src")
		holder := ""
		if l.Holder != nil {
			holder = l.Holder.Agent
		}
		if text != test.text || holder != test.holder {
			t.Errorf("%s: %q, held by %q; want %q, held by %q", name, text, holder, test.text, test.holder)
		}
	}
}

func TestNeedsAndUnitsAreInverse(t *testing.T) {
	units := map[string]int{"port": 2, "db": 1}
	needs := resources.Needs(units)
	if want := []signalbox.Need{{Resource: "db", N: 1}, {Resource: "port", N: 2}}; !reflect.DeepEqual(*needs, want) {
		t.Errorf("needs are %v, want %v", *needs, want)
	}
	if got := resources.Units(needs); !reflect.DeepEqual(got, units) {
		t.Errorf("units are %v", got)
	}
	if resources.Needs(nil) != nil || resources.Units(nil) != nil {
		t.Error("nothing is something")
	}
}
