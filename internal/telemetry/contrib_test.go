package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const contrib = "../../contrib"

// The files for Prometheus and Grafana use only existing metrics and labels.

var (
	metricForm   = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	matcherForm  = regexp.MustCompile(`\{([^}]*)\}`)
	labelForm    = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	groupingForm = regexp.MustCompile(`\b(by|without|on|ignoring)\s*\(([^)]*)\)`)
	rangeForm    = regexp.MustCompile(`\[[^\]]*\]`)
)

// everywhere are labels that Prometheus itself adds.
var everywhere = map[string]bool{"job": true, "instance": true, "le": true}

// words of PromQL that the files use.
var words = []string{
	"sum", "max", "min", "topk", "rate", "increase", "histogram_quantile", "by", "on", "and", "or", "unless", "without", "ignoring", "label_values",
}

// known are the metrics that an expression may name, with their labels; a recorded rule has the labels that
// it groups by.
type known map[string]map[string]bool

func newKnown(t *testing.T) known {
	t.Helper()
	k := known{"up": {}, "process_resident_memory_bytes": {}}
	for name, m := range everything(t) {
		labels := map[string]bool{}
		for _, l := range m.labels {
			labels[l] = true
		}
		if m.kind == "histogram" {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				k[name+part] = labels
			}
			continue
		}
		k[name] = labels
	}
	return k
}

// check returns what is wrong with an expression, and the labels of its result if a grouping defines them.
func (k known) check(expr string) (problems []string, labels map[string]bool) {
	labels = map[string]bool{}
	if depth := strings.Count(expr, "(") - strings.Count(expr, ")"); depth != 0 {
		problems = append(problems, "parentheses do not match")
	}
	var used []map[string]bool
	names := rangeForm.ReplaceAllString(groupingForm.ReplaceAllString(matcherForm.ReplaceAllString(expr, " "), " "), " ")
	for _, name := range metricForm.FindAllString(names, -1) {
		if slices.Contains(words, name) || name == "e" {
			continue
		}
		if k[name] == nil {
			problems = append(problems, "there is no metric "+name)
			continue
		}
		used = append(used, k[name])
	}
	has := func(label string) bool {
		return everywhere[label] || slices.ContainsFunc(used, func(m map[string]bool) bool { return m[label] })
	}
	for _, g := range groupingForm.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[2], ",") {
			label = strings.TrimSpace(label)
			if label == "" || !has(label) {
				problems = append(problems, fmt.Sprintf("%s (%s): no metric of it has that label", g[1], label))
			}
			labels[label] = true
		}
	}
	for _, m := range regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		found := labelForm.FindAllStringSubmatch(m[2], -1)
		if len(found) == 0 {
			problems = append(problems, m[0]+": no label matches")
		}
		for _, l := range found {
			if !everywhere[l[1]] && !k[m[1]][l[1]] {
				problems = append(problems, fmt.Sprintf("%s has no label %s", m[1], l[1]))
			}
		}
	}
	return problems, labels
}

// values wants each label value in an expression to exist.
func values(expr string, seen map[string]map[string]map[string]bool) (problems []string) {
	for _, m := range regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		for _, l := range labelForm.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "job" || l[1] == "status" || strings.HasPrefix(l[2], "!") {
				continue
			}
			for v := range strings.SplitSeq(l[3], "|") {
				if there := seen[m[1]][l[1]]; there != nil && !there[v] {
					problems = append(problems, fmt.Sprintf("%s{%s=%q}: no such value; there are %v", m[1], l[1], v, slices.Sorted(maps.Keys(there))))
				}
			}
		}
	}
	return problems
}

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Record      string            `yaml:"record"`
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readRules(t *testing.T, name string) (f ruleFile) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(contrib, "prometheus", name))
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&f)
	}
	if err != nil || len(f.Groups) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

func TestRulesAndAlertsUseExistingMetrics(t *testing.T) {
	k, seen := newKnown(t), valuesOf(t)
	templated := regexp.MustCompile(`\$labels\.([a-z_]+)`)
	names := map[string]bool{}
	for _, file := range []string{"rules.yml", "alerts.yml"} {
		for _, g := range readRules(t, file).Groups {
			for _, r := range g.Rules {
				name := r.Record + r.Alert
				problems, labels := k.check(r.Expr)
				for _, p := range append(problems, values(r.Expr, seen)...) {
					t.Errorf("%s: %s: %s", file, name, p)
				}
				if names[name] || name == "" || (r.Record != "") == (file == "alerts.yml") {
					t.Errorf("%s: %q stands there twice, or in the wrong file", file, name)
				}
				names[name] = true
				if r.Record != "" {
					k[r.Record] = labels
					continue
				}
				if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["cure"] == "" {
					t.Errorf("%s has no severity, summary or cure", name)
				}
				for _, l := range templated.FindAllStringSubmatch(r.Annotations["summary"], -1) {
					problems, _ := k.check(r.Expr + " + on (" + l[1] + ") 1")
					if len(problems) > 0 {
						t.Errorf("%s: its summary names %s, which it does not have", name, l[1])
					}
				}
			}
		}
	}
}

// If Prometheus is installed (Debian: the package prometheus), its own tool checks the files, too.
func TestPromtoolReadsTheRules(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: the package prometheus has it")
	}
	out, err := exec.Command(tool, "check", "rules", filepath.Join(contrib, "prometheus/rules.yml"), filepath.Join(contrib, "prometheus/alerts.yml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

type panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		RefID        string `json:"refId"`
	} `json:"targets"`
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(contrib, "grafana/signalbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title         string `json:"title"`
		UID           string `json:"uid"`
		SchemaVersion int    `json:"schemaVersion"`
		Templating    struct {
			List []struct{ Name, Type string } `json:"list"`
		} `json:"templating"`
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 || len(d.Templating.List) != 2 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
		t.Errorf("%s %s: schema %d, variables %v", d.Title, d.UID, d.SchemaVersion, d.Templating.List)
	}
	k, seen, ids, asked := newKnown(t), valuesOf(t), map[int]bool{}, map[string]bool{}
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its id stands there twice, or it has no place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("panel %q asks nothing, or a data source of its own", p.Title)
		}
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "signalbox").Replace(q.Expr)
			problems, labels := k.check(expr)
			for _, problem := range append(problems, values(expr, seen)...) {
				t.Errorf("panel %q: %s: %s", p.Title, q.Expr, problem)
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !labels[l[1]] {
					t.Errorf("panel %q: the legend names %s, by which %s does not group", p.Title, l[1], q.Expr)
				}
			}
			for _, name := range metricForm.FindAllString(expr, -1) {
				asked[name] = true
			}
		}
	}
	for _, name := range []string{
		"signalbox_tasks_in_flight", "signalbox_limit_waiting", "signalbox_queue_oldest_age_seconds", "signalbox_task_wait_seconds_bucket", "signalbox_task_run_seconds_bucket",
		"signalbox_submit_refusals_total", "signalbox_tasks_ended_total", "signalbox_agents", "signalbox_tool_queue_depth", "signalbox_schedules",
		"signalbox_account_open", "signalbox_account_used_percent", "signalbox_account_parked_tasks",
	} {
		if !asked[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// A check that never finds anything would pass everything.
func TestCheckFindsErrors(t *testing.T) {
	k, seen := newKnown(t), valuesOf(t)
	for _, expr := range []string{
		`signalbox_nothing`, `sum by (colour) (signalbox_agents)`, `signalbox_agents{colour="red"}`, `sum(signalbox_agents`, `signalbox_task_wait_seconds`,
		`max(signalbox_agents) by (fence)`, `signalbox_agents{state="asleep"}`,
	} {
		problems, _ := k.check(expr)
		if problems = append(problems, values(expr, seen)...); len(problems) == 0 {
			t.Errorf("nothing is found wrong with %s", expr)
		}
	}
}
