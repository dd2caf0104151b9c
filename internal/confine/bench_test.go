//go:build linux

package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// spread runs f b.N times on a number of workers.
func spread(b *testing.B, workers int, f func() error) {
	todo := make(chan struct{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range todo {
				if err := f(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

func program(b *testing.B) string {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip("no program true on PATH")
	}
	return path
}

// BenchmarkBare is the baseline: fork, exec, wait.
func BenchmarkBare(b *testing.B) {
	path := program(b)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d", workers), func(b *testing.B) {
			null, err := os.Open(os.DevNull)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			spread(b, workers, func() error {
				fd := null.Fd()
				pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Env: []string{}, Files: []uintptr{fd, fd, fd}})
				if err != nil {
					return err
				}
				_, err = syscall.Wait4(pid, nil, 0, nil)
				return err
			})
		})
	}
}

// BenchmarkTrue is a run in a box: input written, outputs read, its end
// proven.
func BenchmarkTrue(b *testing.B) {
	path := program(b)
	for _, c := range []struct {
		name   string
		method string
		limits confine.Limits
	}{
		{name: "auto", method: "auto"},
		{name: "limits", method: "auto", limits: confine.Limits{Memory: 256 << 20, Processes: 50}},
		{name: "rlimits", method: "auto", limits: confine.Limits{Memory: 256 << 20, Processes: 50, FileSize: 1 << 20}},
		{name: "cpus", method: "auto", limits: confine.Limits{CPUs: 1}},
		{name: "nogroups", method: "rlimit"},
		{name: "none", method: ""},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", c.name, workers), func(b *testing.B) {
				h, err := confine.Open(confine.Options{Name: "signalbox-bench", Method: c.method})
				if err != nil {
					b.Skip(err)
				}
				defer h.Close()
				spread(b, workers, func() error {
					if c.method == "" {
						return runTrue(path, nil)
					}
					box, err := h.Take(c.limits, confine.Sandbox{})
					if err != nil {
						return err
					}
					if err := runTrue(path, box); err != nil {
						return err
					}
					return box.Free()
				})
			})
		}
	}
}

func runTrue(path string, box proc.Box) error {
	spec := proc.Spec{Argv: []string{path}, Env: []string{}, Stdin: "{}\n", Mark: strconv.FormatInt(marks.Add(1), 10)}
	if box != nil {
		spec.Box = box
	}
	p, err := proc.Start(spec)
	if err != nil {
		return err
	}
	<-p.Exited()
	exit, err := p.End()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("it ended by %v", exit)
	}
	return err
}
