package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

const usd = 1_000_000_000 // nano-dollars

func keeps(of signalbox.Budgets) func(*apitest.Options) {
	return func(o *apitest.Options) { o.Engine.Budgets = of }
}

// A task has the budget of its submit, else the director's. While the task waits, the budget
// can be changed.
func TestBudgetOfATask(t *testing.T) {
	b := apitest.New(t, keeps(signalbox.Budgets{Task: signalbox.Budget{NanoUSD: 5 * usd}}))
	b.AddAgent("coder", 1)
	for body, want := range map[string]api.Budget{
		`{"prompt":"p"}`:                                    {USD: 5},
		`{"prompt":"p","budget":{"usd":9.5}}`:               {USD: 9.5}, // an open director's caller is an admin
		`{"prompt":"p","budget":{"tokens":7}}`:              {USD: 5, Tokens: 7},
		`{"prompt":"p","budget":{"usd":0.25,"tokens":100}}`: {USD: 0.25, Tokens: 100},
	} {
		var got api.Task
		b.Do("GET", "/api/queue/"+b.Submit(body).QueueID, "").Want(t, 200, &got)
		if got.Budget == nil || *got.Budget != want {
			t.Errorf("%s: %+v", body, got.Budget)
		}
	}
	id := b.Submit(`{"prompt":"p"}`).QueueID
	var got api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &got)
	b.Do("PATCH", "/api/queue/"+id, `{"revision":1,"budget":{"usd":2,"tokens":3}}`).Want(t, 200, &got)
	if *got.Budget != (api.Budget{USD: 2, Tokens: 3}) {
		t.Errorf("changed to %+v", got.Budget)
	}
	for _, bad := range []string{`{"usd":-1}`, `{"usd":1e-12}`, `{"usd":1e300}`, `{"tokens":-1}`, `{"tokens":1e300}`, `{"tokens":0.5}`, `{"usd":"5"}`, `{"euro":5}`, `5`, `[]`} {
		b.Do("POST", "/api/queue/task", `{"prompt":"p","budget":`+bad+`}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		b.Do("PATCH", "/api/queue/"+id, `{"revision":2,"budget":`+bad+`}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
}

// Every answer shows what is spent, and that tasks wait until the day is over if a budget is
// used up.
func TestBudgetThatIsUsedUpIsShown(t *testing.T) {
	b := apitest.New(t, keeps(signalbox.Budgets{Agents: map[string]signalbox.Budget{"coder": {NanoUSD: 2 * usd}, "other": {Tokens: 50}}}))
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"p","agent":"coder"}`)
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{CostUSD: 2.5, InputTokens: 10})
	id := b.Submit(`{"prompt":"q","agent":"coder"}`).QueueID
	var all api.Budgets
	b.Do("GET", "/api/budgets", "").Want(t, 200, &all)
	if len(all.Budgets) != 2 || all.Task != nil {
		t.Fatalf("%+v", all)
	}
	coder, other := all.Budgets[0], all.Budgets[1]
	midnight := (signalbox.DayOf(time.Now()) + 1).Start()
	if coder.Name != "coder" || coder.State != "used_up" || coder.Spent != (api.BudgetSpent{USD: 2.5, Tokens: 10}) || coder.Budget != (api.Budget{USD: 2}) || !coder.Until.Equal(midnight) || coder.Since == nil {
		t.Errorf("%+v", coder)
	}
	if other.State != "open" || other.Spent != (api.BudgetSpent{}) || other.Until != nil {
		t.Errorf("%+v", other)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	if w := task.WaitingFor; w == nil || w.Kind != "budget" || w.Name != "agent coder" || w.Text != coder.Text || !w.Until.Equal(midnight) {
		t.Errorf("%+v", w)
	}
	var why api.Why
	b.Do("GET", "/api/queue/"+id+"/why", "").Want(t, 200, &why)
	if !strings.Contains(why.Summary, "Budget of agent coder for "+signalbox.DayOf(time.Now()).String()+" is used up: $2.50 of $2.00; it opens at 00:00 UTC") {
		t.Errorf("%+v", why)
	}
	if c, found, err := b.Engine.Claim(t.Context(), a, 0); found || !c.Held || err != nil {
		t.Errorf("it is claimed: %+v, %v", c, err)
	}
	e := b.Do("POST", "/api/agents/coder/task", `{"message":"now"}`).WantError(t, http.StatusPaymentRequired, signalbox.CodeBudget)
	if !strings.Contains(e.Message, "agent coder") {
		t.Errorf("%+v", e)
	}
	b.Do("POST", "/api/queue/"+id+"/unpark", "").Want(t, 200, nil)
	if _, found, err := b.Engine.Claim(t.Context(), a, 0); !found || err != nil {
		t.Errorf("it does not run anyway: %v", err)
	}
}
