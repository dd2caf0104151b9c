package config

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// decodeResources decodes resources by name.
func decodeResources(f *file, _ string, pair conffile.Pair) {
	if pair.Value.Form == conffile.Nothing {
		return
	}
	if pair.Value.Form != conffile.Section {
		f.add(pair.Value.Line, "resources", "want a section of resources by name, got "+f.value(pair.Value).Shown())
		return
	}
	for one := range f.once(pair.Value, "resources.") {
		key := "resources." + one.Key
		if !signalbox.ValidName(one.Key) {
			f.add(one.Line, key, "want the name of a resource: "+wantName)
			continue
		}
		var r signalbox.Resource
		if !f.entry(one.Value, key, resourceSettings(&r)) {
			continue
		}
		switch {
		case len(r.Values) > 0 && r.Capacity > 0:
			f.add(one.Line, key, "want capacity or values, not both: there are as many units as values")
			continue
		case len(r.Values) > 0:
			r.Capacity = len(r.Values)
		case r.Capacity == 0:
			f.add(one.Line, key, "want capacity, a number of units, or values, a list of what is handed out")
			continue
		}
		if f.c.Resources == nil {
			f.c.Resources = map[string]signalbox.Resource{}
		}
		f.c.Resources[one.Key] = r
	}
}

func resourceSettings(r *signalbox.Resource) schema {
	return schema{
		whole("capacity", 1, signalbox.MaxResourceCapacity, &r.Capacity),
		typed("values", "a list of texts, each once, of 1 to 1,000 bytes in one line, such as 3001", &r.Values, func(v value) ([]string, bool) {
			items, ok := v.asList()
			seen := map[string]bool{}
			for _, item := range items {
				ok = ok && !seen[item] && item != "" && len(item) <= maxResourceValue && signalbox.Printable(item)
				seen[item] = true
			}
			return items, ok && len(items) <= signalbox.MaxResourceCapacity
		}),
		text("env", "the name of a variable, such as PORT", &r.Env, signalbox.ValidEnvName),
	}
}

const maxResourceValue = 1000 // bytes
