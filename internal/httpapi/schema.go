package httpapi

import (
	"maps"
	"reflect"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/schedules"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// schemas makes a JSON schema of each wire type, once, by its Go name.
type schemas struct{ all node }

// ref returns a reference to the schema of a struct. closed says that
// unknown fields are refused, as they are in requests; answers may grow.
func (s *schemas) ref(t reflect.Type, closed bool) node {
	name := t.Name()
	if _, done := s.all[name]; !done {
		s.all[name] = node{} // for recursive types
		s.all[name] = s.object(t, closed)
	} else if closed {
		s.all[name].(node)["additionalProperties"] = false
	}
	return node{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) object(t reflect.Type, closed bool) node {
	props, required := node{}, []string{}
	for _, f := range httpio.JSONFields(t) {
		schema := s.of(f.Field.Type, closed)
		if f.Field.Type.Kind() == reflect.Pointer && !f.Optional {
			schema = node{"anyOf": []node{schema, {"type": "null"}}}
		}
		maps.Copy(schema, rules[t.Name()+"."+f.Name])
		props[f.Name] = schema
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	out := node{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	if closed {
		out["additionalProperties"] = false
	}
	maps.Copy(out, rules[t.Name()])
	return out
}

func (s *schemas) of(t reflect.Type, closed bool) node {
	switch t {
	case httpio.TimeType:
		return node{"type": "string", "format": "date-time"}
	case httpio.RawType: // arbitrary JSON; see rules
		return node{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), closed)
	case reflect.Struct:
		return s.ref(t, closed)
	case reflect.Slice:
		return node{"type": "array", "items": s.of(t.Elem(), closed)}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": s.of(t.Elem(), closed)}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return node{"type": "integer"}
	case reflect.Float64:
		return node{"type": "number"}
	}
	return node{"type": "string"}
}

// either requires exactly one of two names of a field.
func either(one, other string) node {
	return node{"oneOf": []node{{"required": []string{one}}, {"required": []string{other}}}}
}

var (
	promptOrMessage = either("prompt", "message")
	overflows       = []signalbox.Overflow{signalbox.OverflowReject, signalbox.OverflowWait, signalbox.OverflowPersist}
	onDisconnects   = []string{"continue", "cancel"}
)

// rules adds constraints that Go types do not have, from the constants that the engine
// checks.
var rules = map[string]node{
	"SubmitRequest": promptOrMessage,

	"SubmitRequest.prompt":          {"minLength": 1},
	"SubmitRequest.message":         {"minLength": 1},
	"SubmitRequest.timeout_seconds": {"minimum": 0, "maximum": signalbox.MaxTimeoutSeconds},
	"SubmitRequest.priority":        {"minimum": signalbox.MinPriority, "maximum": signalbox.MaxPriority},
	"SubmitRequest.wait_timeout":    {"minimum": 0, "maximum": int(engine.MaxWaitTimeout.Seconds())},
	"SubmitRequest.source":          {"enum": signalbox.Sources()},
	"SubmitRequest.on_lost":         {"enum": []signalbox.OnLost{signalbox.LostFail, signalbox.LostRequeue}},
	"SubmitRequest.session":         {"enum": []signalbox.SessionMode{signalbox.SessionRequire, signalbox.SessionPrefer}},
	"SubmitRequest.session_id":      {"maxLength": signalbox.MaxSessionIDLength},
	"SubmitRequest.model":           {"maxLength": signalbox.MaxWordBytes},
	"SubmitRequest.tier":            {"maxLength": signalbox.MaxWordBytes},
	"SubmitRequest.agent":           {"maxLength": signalbox.MaxAgentNameLength},
	"SubmitRequest.kind":            {"maxLength": signalbox.MaxAgentNameLength},
	"SubmitRequest.source_job":      {"maxLength": signalbox.MaxAgentNameLength},
	"SubmitRequest.overflow":        {"enum": overflows},
	"SubmitRequest.checks":          {"maxItems": signalbox.MaxChecks},
	"SubmitRequest.check_retries":   {"minimum": 0, "maximum": signalbox.MaxCheckRetries},
	"TaskCheck.name":                {"minLength": 1, "maxLength": signalbox.MaxAgentNameLength},
	"TaskCheck.run":                 {"minLength": 1, "maxLength": signalbox.MaxCheckRun},
	"TaskCheck.timeout_seconds":     {"minimum": 0, "maximum": signalbox.MaxCheckTimeout},
	"AgentChecks.state":             {"enum": []signalbox.CheckState{signalbox.CheckPassed, signalbox.CheckFailed, signalbox.CheckUnavailable}},
	"CheckResult.state":             {"enum": []signalbox.CheckState{signalbox.CheckPassed, signalbox.CheckFailed, signalbox.CheckTimeout, signalbox.CheckUnavailable}},
	"ChatRequest":                   promptOrMessage,
	"ChatRequest.prompt":            {"minLength": 1},
	"ChatRequest.message":           {"minLength": 1},
	"ChatRequest.timeout_seconds":   {"minimum": 0, "maximum": signalbox.MaxTimeoutSeconds},
	"ChatRequest.priority":          {"minimum": signalbox.MinPriority, "maximum": signalbox.MaxPriority},
	"ChatRequest.wait_timeout":      {"minimum": 0, "maximum": int(engine.MaxWaitTimeout.Seconds())},
	"ChatRequest.on_lost":           {"enum": []signalbox.OnLost{signalbox.LostFail, signalbox.LostRequeue}},
	"ChatRequest.session_id":        {"maxLength": signalbox.MaxSessionIDLength},
	"ChatRequest.model":             {"maxLength": signalbox.MaxWordBytes},
	"ChatRequest.tier":              {"maxLength": signalbox.MaxWordBytes},
	"ChatRequest.overflow":          {"enum": overflows},
	"ChatRequest.on_disconnect":     {"enum": onDisconnects},
	"BypassRequest":                 promptOrMessage,
	"BypassRequest.prompt":          {"minLength": 1},
	"BypassRequest.message":         {"minLength": 1},
	"BypassRequest.timeout_seconds": {"minimum": 0, "maximum": signalbox.MaxTimeoutSeconds},
	"BypassRequest.allowed_tools":   {"maxItems": engine.MaxAllowedTools},
	"BypassRequest.model":           {"maxLength": signalbox.MaxWordBytes},
	"BypassRequest.tier":            {"maxLength": signalbox.MaxWordBytes},
	"BypassRequest.on_disconnect":   {"enum": onDisconnects},
	"RetryRequest.timeout_seconds":  {"minimum": 0, "maximum": signalbox.MaxTimeoutSeconds},
	"RegisterAgent.slots":           {"minimum": 0, "maximum": signalbox.MaxAgentSlots},
	"PauseRequest.seconds":          {"minimum": 0, "maximum": maxPauseSeconds},
	"NewToken.name":                 {"minLength": 1, "maxLength": 64},
	"NewToken.expires_in_seconds":   {"minimum": 0},
	"LoginRequest.password":         {"minLength": 1, "maxLength": identity.MaxPassword},
	"PutUser.password":              {"minLength": identity.MinPassword, "maxLength": identity.MaxPassword},
	"PutUser.role":                  {"enum": []signalbox.Role{signalbox.RoleAdmin, signalbox.RoleUser}},
	"Heartbeat.state":               {"enum": []string{"idle", "working", "stopping"}},

	"ToolCall.arguments": {"type": "object"},
	"ToolCall.session":   {"maxLength": maxSessionName},
	"Tool.inputSchema":   {"type": "object"},
	"Tool.kind":          {"enum": []gateway.Kind{gateway.KindMCP, gateway.KindREST, gateway.KindOpenAPI, gateway.KindCommand, gateway.KindInternal}},
	"ToolServer.state":   {"enum": []gateway.State{gateway.StateStarting, gateway.StateReady, gateway.StateFailed, gateway.StateStopped}},
	"ToolResult.content": {"type": "array", "items": node{"type": "object"}},

	"ToolResult.metadata":    {"type": "object"},
	"NewToolTask.arguments":  {"type": "object"},
	"NewToolTask.metadata":   {"type": "object"},
	"NewToolTask.timeout_ms": {"minimum": 0, "maximum": engine.MaxToolTimeoutMS},
	"NewToolTask.priority":   {"minimum": signalbox.MinPriority, "maximum": signalbox.MaxPriority},
	"ToolTask.status":        {"enum": seedStatuses},
	"ToolTask.state":         {"enum": signalbox.States()},
	"Task.arguments":         {"type": "object"},
	"Task.metadata":          {"type": "object"},

	"Task.state":   {"enum": signalbox.States()},
	"Task.reason":  {"enum": signalbox.Reasons()},
	"Task.source":  {"enum": signalbox.Sources()},
	"Agent.state":  {"enum": []string{"idle", "working", "withheld", "closed", "down"}},
	"Status.state": {"enum": []string{"running", "draining"}},
	"Error.error":  {"enum": codes()},

	"NewSchedule": {"allOf": []node{
		either("cron_expression", "schedule"), either("message", "prompt"), {"not": node{"required": []string{"agent", "agent_name"}}},
	}},
	"NewSchedule.name":                  {"minLength": 1, "maxLength": signalbox.MaxAgentNameLength},
	"NewSchedule.cron_expression":       {"maxLength": cron.MaxBytes},
	"NewSchedule.schedule":              {"maxLength": cron.MaxBytes},
	"NewSchedule.timeout_seconds":       {"minimum": 0, "maximum": signalbox.MaxTimeoutSeconds},
	"NewSchedule.priority":              {"minimum": signalbox.MinPriority, "maximum": signalbox.MaxPriority},
	"NewSchedule.session_id":            {"maxLength": signalbox.MaxSessionIDLength},
	"NewSchedule.on_lost":               {"enum": []signalbox.OnLost{signalbox.LostFail, signalbox.LostRequeue}},
	"NewSchedule.overlap":               {"enum": signalbox.Overlaps()},
	"NewSchedule.missed":                {"enum": signalbox.MissedPolicies()},
	"NewSchedule.missed_window_seconds": {"minimum": 0, "maximum": schedules.MaxMissedWindow},
	"NewSchedule.on_full":               {"enum": signalbox.OnFulls()},
	"Schedule.source":                   {"enum": []signalbox.ScheduleSource{signalbox.ScheduleFromAPI, signalbox.ScheduleFromConfig}},
	"ScheduleExecution.status": {"enum": []string{
		"held", "firing", "queued", "running", "completed", "failed", "cancelled", "timeout", schedules.ExecutionSkipped, schedules.ExecutionEnded,
	}},
	"ScheduleExecution.trigger": {"enum": []signalbox.RunTrigger{signalbox.TriggerCron, signalbox.TriggerMissed, signalbox.TriggerManual}},

	"Session.state":  {"enum": []signalbox.SessionState{signalbox.SessionActive, signalbox.SessionArchived, signalbox.SessionGone}},
	"Activity.state": {"enum": []string{activityQueued, activityStarted, activityCompleted, activityFailed}},
	"Activity.type":  {"enum": []string{typeChat, typeTask, typeSchedule, typeCollaboration, typeTool}},
	"Task.mode":      {"enum": []string{"queue", "chat", "bypass", "tool"}},
	"Event.kind":     {"minLength": 1},
	"Output.seq":     {"minimum": 0},
	"Output.next":    {"minimum": 0},
	"Task.attempts":  {"minimum": 0},
}

// codes lists the error codes that have a status.
func codes() []string {
	list := make([]string, 0, len(httpio.Statuses))
	for code := range httpio.Statuses {
		list = append(list, string(code))
	}
	slices.Sort(list)
	return list
}
