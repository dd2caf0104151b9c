package alone

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// metrics is GET /metrics, in the text format of Prometheus. Names of jobs need
// no escaping: signalbox.ValidName.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	rows, err := s.o.Scheduler.All(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	var jobs, last, next, failing strings.Builder
	enabled := 0
	for i := range rows {
		row := &rows[i]
		if row.Enabled {
			enabled++
		}
		if !row.LastRun.IsZero() {
			fmt.Fprintf(&last, "signalbox_scheduler_job_last_run_timestamp_seconds{job=%q} %s\n", row.Name, stamp(row.LastRun))
		}
		if at := s.o.Scheduler.Next(*row, 1); len(at) > 0 {
			fmt.Fprintf(&next, "signalbox_scheduler_job_next_run_timestamp_seconds{job=%q} %s\n", row.Name, stamp(at[0]))
		}
		made := 0
		if row.LastStatus != "" && row.LastStatus != signalbox.RunQueued && !row.LastStatus.Open() {
			made = 1
		}
		fmt.Fprintf(&failing, "signalbox_scheduler_job_failing{job=%q} %d\n", row.Name, made)
	}
	fmt.Fprintf(&jobs, "signalbox_scheduler_jobs{state=\"enabled\"} %d\nsignalbox_scheduler_jobs{state=\"disabled\"} %d\n", enabled, len(rows)-enabled)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, help string
		text       *strings.Builder
	}{
		{"signalbox_scheduler_jobs", "Jobs of this scheduler.", &jobs},
		{"signalbox_scheduler_job_last_run_timestamp_seconds", "When a job fired last.", &last},
		{"signalbox_scheduler_job_next_run_timestamp_seconds", "When a job fires next.", &next},
		{"signalbox_scheduler_job_failing", "1 where the newest firing of a job made no task.", &failing},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s", m.name, m.help, m.name, m.text)
	}
}

func stamp(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }
