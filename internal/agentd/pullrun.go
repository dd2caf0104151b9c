package agentd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// outputEvery is the minimum interval of output reports.
const outputEvery = 200 * time.Millisecond

// unreportedRuns lists the runs whose end no director has acknowledged.
func (d *Daemon) unreportedRuns() (list []*run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.ended {
		if rec := r.record(); rec.QueueID != "" && rec.Fence > 0 && !rec.Reported && d.byQueue[rec.QueueID] == r {
			list = append(list, r)
		}
	}
	return list
}

// follow reports on a run until a director has acknowledged its end.
func (p *puller) follow(r *run) {
	startOnce(p, p.following, r, func() { p.reportRun(p.reporting, r) })
}

// startOnce runs f in a goroutine, unless one already runs for that key.
func startOnce[K comparable](p *puller, underWay map[K]bool, key K, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if underWay[key] {
		return
	}
	underWay[key] = true
	p.group.Go(func() {
		defer func() {
			p.mu.Lock()
			delete(underWay, key)
			p.mu.Unlock()
		}()
		f()
	})
}

func (p *puller) reportRun(ctx context.Context, r *run) {
	<-r.admitted
	rec := r.record()
	if r.refused != nil {
		p.refuse(api.PullAsk{QueueID: rec.QueueID, Fence: rec.Fence}, r.refused)
		return
	}
	if p.accept(ctx, r, rec) {
		p.reportOutput(ctx, r)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return
	}
	p.reportEnd(ctx, r)
}

// accept reports that the run is durable. It returns false if nothing more is to be reported
// before the end: the run has ended or is void.
func (p *puller) accept(ctx context.Context, r *run, rec record) bool {
	rep := api.PullReport{Accepted: &api.PullAccepted{TaskID: rec.TaskID, SessionID: rec.SessionID}}
	for try := 1; ; try++ {
		select {
		case <-r.done: // the final report includes it
			return false
		case <-ctx.Done():
			return false
		default:
		}
		answer, err := p.report(ctx, r, rep)
		switch {
		case err == nil:
			p.handleReply(r, answer)
			return true
		case void(err):
			p.voided(r)
			return false
		}
		p.sleep(ctx, r, backoff(try))
	}
}

// reportOutput reports the output of a run. Without output it regularly checks that the
// director still has the log: another director may have taken over the run, and then gets
// the log again.
func (p *puller) reportOutput(ctx context.Context, r *run) {
	at, try := int64(0), 0
	check := time.Tick(p.d.cfg.OutputCheck)
	for {
		asks := false
		select {
		case <-r.log.waitAfterOrClosed(at):
		case <-check:
			asks = at > 0
		case <-r.done:
			return
		case <-ctx.Done():
			return
		}
		out, err := r.log.read(at)
		if err != nil { // the final report has the rest
			p.d.cfg.Logger.Error("output not read", "task", r.record().TaskID, "error", err)
			return
		}
		if out.Next <= at && !out.Truncated && !asks {
			p.sleep(ctx, r, outputEvery) // an incomplete character, or the end
			continue
		}
		answer, err := p.report(ctx, r, api.PullReport{Output: piece(out)})
		switch {
		case err == nil:
			p.handleReply(r, answer)
			at, try = answer.Next, 0
			p.sleep(ctx, r, outputEvery)
		case void(err):
			p.voided(r)
			return
		default:
			try++
			p.sleep(ctx, r, backoff(try))
		}
	}
}

func piece(out api.AgentOutput) *api.PullOutput {
	return &api.PullOutput{Seq: out.Seq, Text: out.Text, Next: out.Next, Truncated: out.Truncated}
}

// reportEnd reports the end of the run, with retries.
func (p *puller) reportEnd(ctx context.Context, r *run) {
	at := int64(-1) // the director's log position is unknown
	for try := 1; ctx.Err() == nil; try++ {
		rep, err := r.lastReport(at)
		if err != nil {
			p.d.cfg.Logger.Error("the end of a run could not be read", "task", r.record().TaskID, "error", err)
			p.sleep(ctx, r, backoff(try))
			continue
		}
		answer, err := p.report(ctx, r, rep)
		switch {
		case err == nil && answer.Again:
			at = answer.Next
			continue
		case err == nil || void(err):
			r.reported()
			return
		}
		pause(ctx, backoff(try))
	}
}

// lastReport is the final report of the run, with the log from byte at as far as it is
// kept. If the director has less of the log, it answers so.
func (r *run) lastReport(at int64) (api.PullReport, error) {
	s, err := r.status(resultCap)
	if err != nil {
		return api.PullReport{}, err
	}
	total, _ := r.log.progress()
	from := max(at, total-tailSize, 0)
	out, err := r.log.read(from)
	if err != nil {
		return api.PullReport{}, err
	}
	o := piece(out)
	o.Truncated = o.Seq > max(at, 0) && (at >= 0 || o.Seq > 0)
	return api.PullReport{Finished: &s, Output: o}, nil
}

// handleReply carries out the answer to a report.
func (p *puller) handleReply(r *run, a api.PullReported) {
	if a.Stop != nil {
		p.end(*a.Stop)
	}
}

// voided stops a revoked run.
func (p *puller) voided(r *run) {
	r.requestStop(stop{state: stateFailed, errType: "stale_fence", message: "the director took the task away while it ran"})
}

// void reports whether an error means that a director wants no more reports of an execution. An
// unknown agent or a name conflict does not: then the agent registers again.
func void(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && (e.Body.Error == "stale_fence" || (e.Body.Error == "not_found" && e.Body.Field != "agent"))
}

func (p *puller) report(ctx context.Context, r *run, rep api.PullReport) (api.PullReported, error) {
	rec := r.record()
	rep.Fence = rec.Fence
	if rep.Finished == nil {
		rep.Note, rep.TokenUsage, rep.CostUSD = r.lastTroubleText(), rec.TokenUsage, rec.CostUSD
	}
	rep.Account = r.account(false)
	return p.send(ctx, rec.QueueID, rep)
}

func (p *puller) send(ctx context.Context, id string, rep api.PullReport) (answer api.PullReported, err error) {
	rep.Instance = p.instance
	err = p.directors.do(func(c *client.Client) error {
		answer, err = c.Report(ctx, p.d.cfg.Name, id, rep)
		return err
	})
	return answer, err
}

// sleep waits for d, or until the run ends.
func (p *puller) sleep(ctx context.Context, r *run, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.done:
	case <-ctx.Done():
	}
}

// refuse reports that a task was refused.
func (p *puller) refuse(q api.PullAsk, cause error) {
	no := api.PullRefused{Status: 500, Message: cause.Error()}
	if ref, ok := errors.AsType[*refusal](cause); ok {
		no.Status, no.Error, no.Message, no.HighestFence = ref.status, ref.body.Error, ref.body.Message, ref.body.HighestFence
		if ref.body.CurrentTask != nil {
			no.BusyWith = ref.body.CurrentTask.ID
		}
	}
	p.sendUntilTaken(q, api.PullReport{Fence: q.Fence, Refused: &no})
}

// sendUntilTaken sends a report that has no run until it is acknowledged.
func (p *puller) sendUntilTaken(q api.PullAsk, rep api.PullReport) {
	startOnce(p, p.answered, q, func() {
		for try := 1; p.reporting.Err() == nil; try++ {
			if _, err := p.send(p.reporting, q.QueueID, rep); err == nil || void(err) {
				return
			}
			pause(p.reporting, backoff(try))
		}
	})
}

// reported records that the end was acknowledged. The record is not synced: reports are
// idempotent.
func (r *run) reported() {
	if err := r.change(func(rec *record) { rec.Reported = true }); err != nil {
		r.d.cfg.Logger.Error("the acknowledgement of a run's end could not be stored", "task", r.record().TaskID, "error", err)
	}
	r.markEndKnown()
}

// isUnkillable reports whether the run could not be killed at its end.
func (r *run) isUnkillable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.survivors != nil
}

// endIsKnown reports whether a caller has read the end.
func (r *run) endIsKnown() bool {
	select {
	case <-r.endKnown:
		return true
	default:
		return false
	}
}

// claim is the agent's part of a claim request.
func (p *puller) claim() api.PullClaim {
	d := p.d
	c := api.PullClaim{Instance: p.instance, Slots: d.cfg.Slots, IsolatedSlots: d.cfg.IsolatedSlots, Steps: d.cfg.Runner.LLM.Steps.Told(), Account: d.account.told(d),
		WorkDir: d.cfg.WorkDir, Workspace: d.cfg.Workspace.Kind, FolderID: d.folder, Full: d.takesNone()}
	d.mu.Lock()
	c.HighestFence, c.Director = d.highest, d.servingDirector
	var live []*run
	for lane, r := range d.lanes {
		if r.record().Director != d.servingDirector || r.isUnkillable() { // it belongs to another director or cannot be killed
			if !lane.Isolated {
				c.Held++
			}
			continue
		}
		live = append(live, r)
	}
	d.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	named := map[*run]bool{}
	for _, r := range live {
		named[r] = true
		c.Runs = append(c.Runs, r.claimView())
	}
	for r := range p.following {
		if !named[r] {
			c.Runs = append(c.Runs, r.claimView())
		}
	}
	for a := range p.answered {
		c.Runs = append(c.Runs, api.PullRun{QueueID: a.QueueID, Fence: a.Fence, Ended: true})
	}
	return c
}

// claimView is the run in a claim request.
func (r *run) claimView() api.PullRun {
	rec := r.record()
	ran := time.Since(*rec.StartedAt)
	silent := ran
	if _, last := r.log.progress(); !last.IsZero() {
		silent = min(ran, time.Since(last))
	}
	return api.PullRun{
		QueueID: rec.QueueID, Fence: rec.Fence, Slot: rec.Slot, Isolated: rec.Isolated, Ended: rec.terminal(), Stopping: r.stopReason() != nil,
		RanMS: max(0, ran.Milliseconds()), SilentMS: max(0, silent.Milliseconds()),
		Note: r.lastTroubleText(),
	}
}

// instance distinguishes agents of the same name. It lives as long as the data folder.
func (d *disk) instance() (string, error) {
	path := filepath.Join(d.dir, "instance")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := runner.NewUUID()
	return id, writeDurable(path, []byte(id+"\n"))
}
