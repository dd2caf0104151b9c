package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Part is the environment variable with which this program starts itself as one of
// several directors; its value is the order as JSON. In one process they would compete
// with each other's callers for its scheduler, which real directors do not.
const Part = "SIGNALBOX_BENCH_DIRECTOR"

// part is one of several directors: it opens the store, reports that it is ready, waits
// for a line, and runs cycles with its callers.
type part struct {
	Kind    kind
	URL     string
	Callers int
	First   int // number of its first agent
	Span    time.Duration
}

// RunPart runs such a process.
func RunPart(ctx context.Context, order string, in io.Reader, out io.Writer) error {
	var p part
	if err := json.Unmarshal([]byte(order), &p); err != nil {
		return err
	}
	s, err := open(ctx, p.Kind, p.URL)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintln(out, `"ready"`)
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	v, err := load.Run(ctx, p.Callers, p.Span, func(ctx context.Context, i int) error {
		return ours.Cycle(ctx, s, ours.Agent(p.First+i))
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(v)
}

// apart measures cycles of several directors in separate processes, which share the
// callers. The rate is the total, p99 that of the slowest.
func apart(callers, directors int) func(context.Context, *measure.Bench, kind, string, *verbs.Shared) (measure.Values, error) {
	return func(ctx context.Context, b *measure.Bench, k kind, url string, _ *verbs.Shared) (measure.Values, error) {
		var all []*process
		defer func() {
			for _, p := range all {
				p.end()
			}
		}()
		for n := range directors {
			p, err := begin(ctx, part{Kind: k, URL: url, Callers: callers / directors, First: n * callers / directors, Span: 4 * b.Span})
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return together(all)
	}
}

func together(all []*process) (measure.Values, error) {
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in); err != nil {
			return nil, err
		}
	}
	sum := measure.Values{}
	for _, p := range all {
		var v measure.Values
		if err := p.out.Decode(&v); err != nil {
			return nil, fmt.Errorf("a director did not say what it saw: %w", err)
		}
		n := float64(len(all))
		sum[load.Rate] += v[load.Rate]
		sum[load.CPU] += v[load.CPU] / n
		sum[load.P50] += v[load.P50] / n
		sum[load.P99] = max(sum[load.P99], v[load.P99])
	}
	return sum, nil
}

// process is a running director.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// begin starts a director, and returns when it is ready.
func begin(ctx context.Context, o part) (*process, error) {
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), Part+"="+string(order), "GOGC=400")
	cmd.Stderr = os.Stderr
	p := &process{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(out)
	var ready string
	if err := p.out.Decode(&ready); err != nil {
		p.end()
		return nil, errors.Join(errors.New("a director did not start"), err)
	}
	return p, nil
}

// end waits for a director that has begun, or stops one that has not.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
