package pack

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

var update = flag.Bool("update", false, "write testdata/rows.golden, of a new minor")

const golden = "testdata/rows.golden"

// Directors of one minor version share a store, and each reads what the others wrote: within a minor version,
// a row has the same bytes in every release. If this test fails, a release would write rows that earlier ones
// cannot read, or misread. For a new minor version: go test ./internal/store/pack -run Golden -update
func TestGoldenRowsOfThisMinor(t *testing.T) {
	var have strings.Builder
	for _, row := range rowsOfEveryKind(t) {
		fmt.Fprintf(&have, "%s %s\n", row.kind, hex.EncodeToString(row.body))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(have.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wants := strings.Split(string(want), "\n")
	for i, line := range strings.Split(have.String(), "\n") {
		if i >= len(wants) || line != wants[i] {
			kind, _, _ := strings.Cut(line, " ")
			t.Errorf("a row of the kind %s has other bytes than releases of this minor wrote:\n%s", kind, line)
		}
	}
	if len(wants) != strings.Count(have.String(), "\n")+1 {
		t.Errorf("%s has %d lines", golden, len(wants)-1)
	}
}

type goldenRow struct {
	kind string
	body []byte
}

func rowsOfEveryKind(t *testing.T) []goldenRow {
	t.Helper()
	var task signalbox.Task
	var entry signalbox.Entry
	var token signalbox.Token
	var user signalbox.User
	var request signalbox.Request
	var result signalbox.Result
	var agent signalbox.Agent
	var pause signalbox.Pause
	var session signalbox.Session
	var audit signalbox.Audit
	var stale signalbox.Stale
	var schedule signalbox.Schedule
	var run signalbox.ScheduleRun
	var usage signalbox.Usage
	var account signalbox.Account
	var hold signalbox.Hold
	for _, v := range []any{&task, &entry, &token, &user, &request, &result, &agent, &pause, &session, &audit, &stale, &schedule, &run, &usage, &account, &hold} {
		n := 0
		whole(t, reflect.ValueOf(v).Elem(), &n)
	}
	journal := New(0)
	retry := entry
	retry.Account = ""
	first := retry
	first.RetryOf = ""
	plain := first
	plain.Owner, plain.Schedule = "", ""
	unlandable := request
	unlandable.Land = nil
	placeless := unlandable
	placed := schedule
	placed.Checking, placed.Landing = signalbox.Checking{}, nil
	unplaced := placed
	placeless.Workspace, unplaced.Workspace = nil, nil
	unchecked := placeless
	unchecked.Checking = signalbox.Checking{}
	before := unchecked // directors of earlier releases refuse rows of an environment that no admin gave
	before.EnvBy = ""
	unlanded := task
	unlanded.Landing = nil
	budgeted := unlanded
	budgeted.Needs, budgeted.Workplace = nil, ""
	parkable := budgeted
	parkable.Budget = signalbox.Budget{}
	edited := parkable
	edited.Parking, edited.IgnoreGates = nil, false
	spent := edited
	spent.EditedAt, spent.EditedBy = time.Time{}, ""
	requeued := spent
	requeued.Spent = signalbox.Spent{}
	failed := requeued
	failed.Requeues = nil
	sized := failed
	sized.Failure, sized.Cause = "", ""
	unsized := sized
	unsized.RequestSize, unsized.ResultSize = 0, 0
	grounded := result
	grounded.Landed = nil
	baseless := *result.Changes
	baseless.BaseBranch = ""
	grounded.Changes = &baseless
	unjudged := grounded
	unjudged.Checked = nil
	unchanged := unjudged
	unchanged.Changes = nil
	unnumbered := unchanged
	unnumbered.TailLine = 0
	nameless := unnumbered
	nameless.Model = ""
	old := nameless
	old.LogTimes, old.Calls = nil, nil
	oldStale := stale
	oldStale.Result.LogTimes, oldStale.Result.Calls, oldStale.Result.Model, oldStale.Result.TailLine = nil, nil, "", 0
	oldStale.Result.Changes, oldStale.Result.Checked, oldStale.Result.Landed = nil, nil, nil
	unaccounted := agent
	unaccounted.Account = ""
	silent := unaccounted
	silent.Proof = false
	return []goldenRow{
		{"task", Task(nil, &unsized)}, {"entry", journal.Entry(nil, &first)}, {"entry-plain", journal.Entry(nil, &plain)}, {"extra", Extra(&task)}, {"token", Token(&token)}, {"user", User(&user)},
		{"request", Request(&before)}, {"request-plain", Request(&signalbox.Request{Prompt: "p", Model: "m"})}, {"result", Result(&old)}, {"agent", Agent(&silent)}, {"pause", Pause(&pause)},
		{"session", Session(&session)}, {"audit", Audit(&audit)}, {"stales", Stales([]signalbox.Stale{oldStale, oldStale})},
		{"schedule", Schedule(&unplaced)}, {"run", Run(&run)},
		{"request-env-by", Request(&unchecked)}, {"agent-proof", Agent(&unaccounted)}, {"task-sized", Task(nil, &sized)},
		{"task-failed", Task(nil, &failed)}, {"entry-retry", journal.Entry(nil, &retry)},
		{"task-requeued", Task(nil, &requeued)}, {"result-course", Result(&nameless)},
		{"task-spent", Task(nil, &spent)}, {"result-model", Result(&unnumbered)}, {"usage-id", []byte(UsageID(&usage.UsageKey))}, {"usage", Usage(&usage)}, {"task-edited", Task(nil, &edited)}, {"result-numbered", Result(&unchanged)},
		{"task-parked", Task(nil, &parkable)}, {"entry-account", journal.Entry(nil, &entry)}, {"agent-account", Agent(&agent)}, {"account", Account(&account)}, {"task-budget", Task(nil, &budgeted)}, {"result-changes", Result(&unjudged)},
		{"request-checks", Request(&placeless)}, {"result-checks", Result(&grounded)},
		{"task-needs", Task(nil, &unlanded)}, {"holds", Holds([]signalbox.Hold{hold, hold})},
		{"request-workspace", Request(&unlandable)}, {"schedule-workspace", Schedule(&placed)}, {"schedule-land", Schedule(&schedule)},
		{"task-landing", Task(nil, &task)}, {"request-land", Request(&request)}, {"result-landed", Result(&result)},
	}
}

// whole sets every field of a value, at any depth, to a distinct value.
func whole(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(int64(*n) * 1000).UTC()))
		return
	case signalbox.State:
		v.SetString(string(signalbox.Working))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				whole(t, v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		whole(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			whole(t, v.Index(i), n)
		}
	case reflect.Map: // one entry, since the order of more is random
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		whole(t, key, n)
		whole(t, value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 2)
	default:
		t.Fatalf("a row has a field of kind %s: fill it here", v.Kind())
	}
}
