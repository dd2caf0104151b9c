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
		want: strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1],
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
	pair, key, ok := s.take(name)
	if !ok {
		return 0
	}
	text, loose := s.number(pair.Value, key)
	n, err := strconv.ParseFloat(text, 64)
	if !loose || err != nil || !(n >= 0.01 && n <= 10_000) {
		if text != unsaid {
			s.wrong(pair.Value, key, "how many cores' worth of time, from 0.01 to 10000, such as 0.5", false)
		}
		return 0
	}
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
	pair, key, ok := s.take(names...)
	if !ok {
		return 0
	}
	text, _ := s.number(pair.Value, key)
	if text == unsaid {
		return 0
	}
	if pair.Value.Form == conffile.Text {
		if filled, _, ok := s.fill(pair.Value, key, nil); ok {
			text = strings.TrimSpace(filled)
		}
	}
	n, good := bytesOf(text)
	if !good || n < float64(lo) || n > float64(hi) {
		s.wrong(pair.Value, key, fmt.Sprintf("a size from %s to %s, such as 512MiB, 512MB or a number of bytes", Size(lo), Size(hi)), false)
		return 0
	}
	return int64(n)
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
