package failpoint

import "slices"

// Action is what a point does.
type Action string

// The actions. At a point before an operation, Fail and Lose are the same: the operation does not happen, and
// its caller gets an error. After it, Lose drops the answer. A store never reports a failure of something
// that it has done, so a point after a verb only delays or ends the process.
const (
	Fail  Action = "error"
	Lose  Action = "lost"
	Delay Action = "delay"
	Exit  Action = "exit" // with code 2, like a panic
	Kill  Action = "kill" // like kill -9
)

// Verbs are the verbs of a store that have points. Beat and Tickets belong to several directors over a shared
// store, which is not wrapped. Restore, RestoreUsage, FreeSlot, DeleteToken and RemoveAccount have no points
// yet; the simulation crashes at FreeSlot.
var Verbs = []string{
	"Submit", "Claim", "Apply", "Renew", "Wake", "PutAgent", "RemoveAgent", "PutSession", "KeepStale",
	"PutToken", "PutUser", "DeleteUser", "AppendAudit", "SetPause", "Resume", "PutSchedule", "DeleteSchedule", "Note", "Prune", "ChangeAccount",
}

// Asked are the requests of a director to an agent, and the agent's answers.
var Asked = []string{"offer", "task", "output", "cancel", "status", "sessions"}

// Home are the requests of an agent, and of a standalone scheduler, to their director.
var Home = []string{"registerAgent", "heartbeat", "submit"}

// Routes are the routes of the director whose answers have points, by name in the route table.
var Routes = []string{
	"submit", "submitTask", "queue", "task", "cancel", "retry", "pause", "resume", "history", "registerAgent", "heartbeat", "removeAgent",
	"clearLane", "releaseLane", "chat", "bypass", "archiveSession", "createToken", "revokeToken", "putUser", "removeUser", "callTool",
	"createToolTask", "createSchedule", "removeSchedule", "triggerSchedule",
}

// Points returns the names of all points.
func Points() []string {
	var all []string
	for _, group := range []struct {
		prefix string
		names  []string
	}{{"store.", Verbs}, {"agent.", Asked}, {"home.", Home}, {"tool.", []string{"call"}}, {"reply.", Routes}, {"answer.", Asked}} {
		for _, name := range group.names {
			all = append(all, group.prefix+name+".before", group.prefix+name+".after")
		}
	}
	return all
}

// Actions returns the possible actions of a point.
func Actions(point string) []Action {
	all := []Action{Kill, Fail, Lose, Delay, Exit}
	switch {
	case !slices.Contains(Points(), point):
		return nil
	case kindOf(point) == "store" && isAfter(point):
		return []Action{Kill, Delay, Exit}
	case kindOf(point) == "store" || kindOf(point) == "tool":
		return []Action{Kill, Fail, Delay, Exit}
	case kindOf(point) == "reply" || kindOf(point) == "answer":
		return []Action{Kill, Lose, Delay}
	}
	return all
}
