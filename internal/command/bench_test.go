//go:build unix

package command_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// BenchmarkRun measures a whole run, from its input to the proof that no
// process is alive, next to a bare fork, exec and wait of the same program.
func BenchmarkRun(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip("no program true on PATH")
	}
	b.Run("bare", func(b *testing.B) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			b.Fatal(err)
		}
		defer null.Close()
		fd := null.Fd()
		spread(b, func(int64) {
			pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Env: []string{}, Files: []uintptr{fd, fd, fd}})
			if err == nil {
				_, err = syscall.Wait4(pid, nil, 0, nil)
			}
			if err != nil {
				b.Error(err)
			}
		})
	})
	b.Run("exec.Cmd", func(b *testing.B) {
		spread(b, func(int64) {
			if err := exec.Command(path).Run(); err != nil {
				b.Error(err)
			}
		})
	})
	for name, c := range map[string]struct {
		host   *confine.Host
		limits toolconf.CommandLimits
	}{
		"plain": {}, "boxed": {host: boxes}, "limits": {host: boxes, limits: toolconf.CommandLimits{Memory: 256 << 20, Processes: 50}},
	} {
		b.Run(name, func(b *testing.B) {
			tool, err := command.New(toolconf.CommandTool{Name: "t", Command: path, Cwd: b.TempDir(), Limits: c.limits}, command.Options{Host: c.host})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			spread(b, func(i int64) {
				o := tool.Run(b.Context(), command.Run{Mark: "bench-" + strconv.FormatInt(i, 10), TaskID: "queue-1"})
				if o.Reason != signalbox.ReasonCompleted {
					b.Error(o.Message)
				}
			})
		})
	}
}

// spread runs f b.N times on as many workers as there are cores.
func spread(b *testing.B, f func(i int64)) {
	var i atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := i.Add(1); n <= int64(b.N); n = i.Add(1) {
				f(n)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}
