package toolconf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// rule says what a text must be.
type rule struct {
	want   string
	ok     func(string) bool // nil: anything
	secret bool
	keep   func(string) bool // what stands between braces and is no variable
}

func (s *section) text(r rule, names ...string) string {
	pair, key, ok := s.take(names...)
	if !ok {
		return ""
	}
	return s.textOf(pair.Value, key, r)
}

func (s *section) textOf(n *conffile.Node, key string, r rule) string {
	text, _ := s.ruled(n, key, r)
	return text
}

// scalar takes numbers and booleans for texts, as the values of variables and
// arguments often are written.
func (s *section) scalar(n *conffile.Node, key string, r rule) (string, bool) {
	switch {
	case n.Fault != "":
		s.problem(n.Line, key, n.Fault)
		return "", false
	case n.Form == conffile.Number || n.Form == conffile.Boolean:
		return n.Text, true
	}
	return s.ruled(n, key, r)
}

// ruled is a text that follows a rule, its variables filled in.
func (s *section) ruled(n *conffile.Node, key string, r rule) (string, bool) {
	text, ok := "", false
	if n.Form == conffile.Text {
		if text, _, ok = s.fill(n, key, r.keep); !ok {
			return "", false
		}
		ok = r.ok == nil || r.ok(text)
	}
	if !ok {
		s.wrong(n, key, r.want, r.secret)
		return "", false
	}
	return text, true
}

func (s *section) texts(r rule, names ...string) []string {
	pair, key, ok := s.take(names...)
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.List {
		s.problem(pair.Value.Line, key, "want a list, each item "+r.want+", got "+form(pair.Value))
		return nil
	}
	var out []string
	for i, item := range pair.Value.Items {
		if text, ok := s.scalar(item, fmt.Sprintf("%s[%d]", key, i), r); ok {
			out = append(out, text)
		}
	}
	return out
}

func (s *section) table(name, value rule, names ...string) map[string]string {
	pair, key, ok := s.take(names...)
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "a section of keys and values", true)
		return nil
	}
	out := map[string]string{}
	for p := range s.once(pair.Value, key) {
		sub := key + "." + shownName(p.Key)
		if !name.ok(p.Key) {
			s.problem(p.Line, sub, "want "+name.want+" as the key")
			continue
		}
		if text, ok := s.scalar(p.Value, sub, value); ok {
			out[p.Key] = text
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// typed reads a value that is no text, which a variable may hold. get returns it,
// or what it wants.
func typed[T any](s *section, get func(conffile.Value, conffile.Pair) (T, string), names ...string) (out T, ok bool) {
	pair, key, ok := s.take(names...)
	if !ok {
		return out, false
	}
	v := conffile.Value{Form: pair.Value.Form, Text: pair.Value.Text}
	if v.Form == conffile.Text {
		if v.Text, v.Untyped, ok = s.fill(pair.Value, key, nil); !ok {
			return out, false
		}
	}
	got, want := get(v, pair)
	if want != "" {
		s.wrong(pair.Value, key, want, false)
		return out, false
	}
	return got, true
}

func (s *section) whole(lo, hi int, names ...string) int {
	n, _ := typed(s, func(v conffile.Value, _ conffile.Pair) (int, string) {
		if n, ok := v.Whole(lo, hi); ok {
			return n, ""
		}
		return 0, conffile.WantWhole(lo, hi)
	}, names...)
	return n
}

// duration takes a Go duration or a number, of milliseconds where the key
// says so and else of seconds.
func (s *section) duration(lo, hi time.Duration, names ...string) (time.Duration, bool) {
	return typed(s, func(v conffile.Value, pair conffile.Pair) (time.Duration, string) {
		d, ok := v.Duration(lo, hi, s.unit(pair))
		switch {
		case ok:
			return d, ""
		case strings.HasSuffix(pair.Key, "Ms"):
			return 0, fmt.Sprintf("a number of milliseconds from %d to %d", lo.Milliseconds(), hi.Milliseconds())
		}
		return 0, conffile.WantDuration(lo, hi)
	}, names...)
}

// unit is what a plain number counts. Coding CLIs write timeout in seconds or
// in milliseconds, with an hour as the most that any of the former take.
func (s *section) unit(pair conffile.Pair) time.Duration {
	const hour = 3600
	n, err := strconv.ParseFloat(pair.Value.Text, 64)
	if strings.HasSuffix(pair.Key, "Ms") || s.millis || !s.strict && pair.Key == "timeout" && err == nil && n > hour {
		return time.Millisecond
	}
	return time.Second
}

func (s *section) boolean(otherwise bool, names ...string) bool {
	on, ok := typed(s, func(v conffile.Value, _ conffile.Pair) (bool, string) {
		if on, ok := v.Boolean(); ok {
			return on, ""
		}
		return false, "true or false"
	}, names...)
	if !ok {
		return otherwise
	}
	return on
}

// The words of a restart policy and of a sandbox.
const (
	Keep    = "keep"
	Fail    = "fail"
	Requeue = "requeue"

	SandboxOff      = "off"
	SandboxAuto     = "auto"
	SandboxRequired = "required"
)

func oneOf(words ...string) rule {
	return rule{
		want: conffile.WantOneOf(words...),
		ok:   func(s string) bool { return slices.Contains(words, s) },
	}
}

// restart reads what becomes of a tool's tasks at a restart: one word for both
// kinds of them, or a section.
func (s *section) restart() Restart {
	out := Restart{Pending: Keep, Running: Fail}
	pair, key, ok := s.take("restart")
	if !ok {
		return out
	}
	if pair.Value.Form != conffile.Section {
		switch s.textOf(pair.Value, key, oneOf(Fail, Requeue, Keep)) {
		case Fail:
			out.Pending = Fail // seed async-task-queue: both end
		case Requeue:
			out.Running = Requeue
		}
		return out
	}
	in := s.open(pair.Value, pair.Line, key)
	if in == nil {
		return out
	}
	if word := in.text(oneOf(Keep, Fail), "pending"); word != "" {
		out.Pending = word
	}
	if word := in.text(oneOf(Fail, Requeue), "running"); word != "" {
		out.Running = word
	}
	in.finish(nil)
	return out
}

func (s *section) limits() CommandLimits {
	out := CommandLimits{Output: DefaultOutput}
	pair, key, ok := s.take("limits")
	if !ok {
		return out
	}
	in := s.open(pair.Value, pair.Line, key)
	if in == nil {
		return out
	}
	out.Memory = in.size(1<<20, 1<<50, "memory")
	out.CPUs = in.cores("cpus")
	out.CPUTime, _ = in.duration(time.Millisecond, longestRun, "cpuTime", "cpu_time", "cpuTimeMs")
	out.Processes = in.whole(1, 1_000_000, "processes")
	out.FileSize = in.size(1, 1<<50, "fileSize", "file_size")
	out.OpenFiles = in.whole(8, 1_000_000, "openFiles", "open_files")
	if n := in.size(1, 1<<40, "output"); n > 0 {
		out.Output = n
	}
	in.finish(nil)
	return out
}

func (s *section) cores(name string) float64 {
	n, _ := typed(s, func(v conffile.Value, _ conffile.Pair) (float64, string) {
		text, ok := v.Number()
		n, err := strconv.ParseFloat(text, 64)
		if ok && err == nil && n >= 0.01 && n <= 10_000 {
			return n, ""
		}
		return 0, "how many cores' worth of time, from 0.01 to 10000, such as 0.5"
	}, name)
	return n
}

// units are those of sizes. Those of ten come after those of two that end in
// the same letter.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// size reads a number of bytes.
func (s *section) size(lo, hi int64, names ...string) int64 {
	n, _ := typed(s, func(v conffile.Value, _ conffile.Pair) (int64, string) {
		n, ok := bytesOf(strings.TrimSpace(v.Text))
		if ok && n >= float64(lo) && n <= float64(hi) {
			return int64(n), ""
		}
		return 0, fmt.Sprintf("a size from %s to %s, such as 512MiB, 512MB or a number of bytes", Size(lo), Size(hi))
	}, names...)
	return n
}

func bytesOf(text string) (float64, bool) {
	times := 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, times = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	n *= times
	return n, err == nil && n == math.Trunc(n) // neither NaN nor a part of a byte
}

// Size writes a number of bytes as files have it.
func Size(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; n >= int64(u.bytes) && n%int64(u.bytes) == 0 {
			return fmt.Sprintf("%d%s", n/int64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// sandbox reads what a run may reach: a word, or a section that has one.
func (s *section) sandbox() Sandbox {
	modes := oneOf(SandboxOff, SandboxAuto, SandboxRequired)
	out := Sandbox{Mode: SandboxOff}
	pair, key, ok := s.take("sandbox")
	if !ok {
		return out
	}
	if pair.Value.Form != conffile.Section {
		if word := s.textOf(pair.Value, key, modes); word != "" {
			out.Mode = word
		}
		return out
	}
	in := s.open(pair.Value, pair.Line, key)
	if in == nil {
		return out
	}
	// Who writes down what a run may reach means it to hold, and which of both
	// ways is not for us to guess.
	if !in.has("mode") {
		in.problem(in.line, in.key, "it has no mode: want auto (where this machine has a sandbox) or required (a run without it is refused)")
	}
	if word := in.text(modes, "mode"); word != "" {
		out.Mode = word
	}
	out.Kind = in.text(oneOf("bubblewrap", "landlock"), "kind")
	out.Read, out.Write = in.folders("read"), in.folders("write")
	out.Network = in.boolean(false, "network")
	in.finish(nil)
	return out
}

func (s *section) folders(name string) []string {
	paths := s.texts(folderName, name)
	for i, path := range paths {
		paths[i] = s.path(path)
	}
	return paths
}
