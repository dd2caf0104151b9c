package runner

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
)

// LimitsQuery asks a CLI how much of its account's limits is used, without a run. Its methods
// must not be called concurrently.
type LimitsQuery struct {
	Argv  []string
	Env   []string // "K=V" on top of the environment that the daemon builds
	Input string   // written at once; the CLI's input is closed after the answer

	heard trouble
	err   error
	done  bool
}

// LimitsQuery is nil, for kinds that have no such query.
func (b commonRunner) LimitsQuery(string, []string) *LimitsQuery { return nil }

// codexQuestion is the input of codex app-server. It answers each ID on one
// line.
const codexQuestion = `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"signalbox","version":"1"}}}
{"method":"initialized"}
{"id":2,"method":"account/rateLimits/read"}
`

// LimitsQuery works only for ChatGPT logins: keys have no windows that can be queried.
func (c codexRunner) LimitsQuery(home string, environ []string) *LimitsQuery {
	bin, err := c.binary()
	if _, plan := c.login(home, environ); err != nil || !plan {
		return nil
	}
	return &LimitsQuery{Argv: []string{bin, "app-server"}, Env: []string{"CODEX_HOME=" + c.StateDir(home)}, Input: codexQuestion}
}

// codexReply is a line of codex app-server: an answer, or a notification, which has no ID.
type codexReply struct {
	ID     number          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message word `json:"message"`
	} `json:"error"`
}

// codexRates are the limits of an account, with the names of the protocol.
type codexRates struct {
	Limits struct {
		Primary   *codexRate `json:"primary"`
		Secondary *codexRate `json:"secondary"`
	} `json:"rateLimits"`
}

// codexRate is a codexWindow with the names of the protocol.
type codexRate struct {
	Used     number `json:"usedPercent"`
	Minutes  number `json:"windowDurationMins"`
	ResetsAt number `json:"resetsAt"`
}

// Line takes a line of the CLI's output, and reports whether it is the
// answer.
func (q *LimitsQuery) Line(line []byte) bool {
	var a codexReply
	if q.done || json.Unmarshal(line, &a) != nil || (a.ID != 2 && (a.ID != 1 || a.Error == nil)) {
		return q.done
	}
	q.done = true
	var rates codexRates
	if a.Error != nil {
		q.err = fmt.Errorf("it answers: %s", limitText(string(a.Error.Message)))
	} else if json.Unmarshal(a.Result, &rates) != nil {
		q.err = errors.New("its answer is not understood")
	}
	q.heard.codexWindow("primary", (*codexWindow)(rates.Limits.Primary))
	q.heard.codexWindow("secondary", (*codexWindow)(rates.Limits.Secondary))
	return true
}

// Windows returns the answer.
func (q *LimitsQuery) Windows() ([]api.AccountWindow, error) { return q.heard.heard.Windows, q.err }
