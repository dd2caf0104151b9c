package httpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// node is an object of the description.
type node map[string]any

// describe returns the OpenAPI 3.1 description of routes of the table.
func describe(version string, routes []api.Route) ([]byte, error) {
	s := schemas{all: node{}}
	errorRef := s.ref(reflect.TypeFor[api.Error](), false)
	paths := map[string]node{}
	for _, route := range routes {
		path := openPath(route.Path)
		if paths[path] == nil {
			paths[path] = node{}
		}
		paths[path][strings.ToLower(route.Method)] = operation(route, &s, errorRef)
	}
	version = cmp.Or(version, "dev")
	return json.MarshalIndent(node{
		"openapi": "3.1.0",
		"info": node{
			"title": "Signalbox director", "version": version,
			"summary": "One durable queue in front of every AI agent",
			"license": node{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []node{{"url": "/"}},
		"paths":   paths,
		"components": node{
			"schemas": s.all,
			"securitySchemes": node{
				"bearer": node{"type": "http", "scheme": "bearer"},
				"login":  node{"type": "apiKey", "in": "cookie", "name": access.LoginCookie},
			},
		},
	}, "", "  ")
}

var pathVar = regexp.MustCompile(`\{([a-z_]+)(?:\.\.\.)?\}`)

// openPath converts a path of the mux to the OpenAPI form.
func openPath(p string) string {
	return pathVar.ReplaceAllString(strings.TrimSuffix(p, "{$}"), "{$1}")
}

func operation(route api.Route, s *schemas, errorRef node) node {
	op := node{
		"operationId": route.Name,
		"summary":     route.Summary,
		"tags":        []string{string(route.Scope)},
		"responses":   responses(route, s, errorRef),
	}
	if params := parameters(route); len(params) > 0 {
		op["parameters"] = params
	}
	if route.Request != nil {
		op["requestBody"] = node{
			"required": !optionalBody[route.Name],
			"content":  node{"application/json": node{"schema": s.ref(reflect.TypeOf(route.Request), true)}},
		}
	}
	op["security"] = []node{}
	if route.Scope != api.ScopePublic && route.Scope != api.ScopeTicket {
		// The required scope, as a role. An open director requires no token.
		scope := []string{string(route.Scope)}
		if route.Scope == api.ScopeAny {
			scope = []string{}
		}
		op["security"] = []node{{"bearer": scope}, {"login": scope}}
	}
	return op
}

// optionalBody has the routes whose body is optional.
var optionalBody = map[string]bool{"retry": true, "pause": true, "resume": true, "closeAccount": true, "callTool": true, "createToolTask": true}

func parameters(route api.Route) []node {
	var list []node
	for _, m := range pathVar.FindAllStringSubmatch(route.Path, -1) {
		list = append(list, node{"name": m[1], "in": "path", "required": true, "schema": node{"type": "string"}})
	}
	for _, p := range route.Query {
		schema := node{"type": "string"}
		if p.Name == "limit" {
			schema = node{"type": "integer", "minimum": 1, "maximum": httpio.MaxLimit, "default": httpio.DefaultLimit}
		}
		param := node{"name": p.Name, "in": p.In, "schema": schema}
		if p.Summary != "" {
			param["description"] = p.Summary
		}
		list = append(list, param)
	}
	return list
}

func responses(route api.Route, s *schemas, errorRef node) node {
	out := node{}
	success := node{"description": http.StatusText(route.Status)}
	if content := answerContent(route, s); content != nil {
		success["content"] = content
	}
	for _, status := range append([]int{route.Status}, alsoSuccess[route.Name]...) {
		copied := node{}
		maps.Copy(copied, success)
		copied["description"] = http.StatusText(status)
		out[strconv.Itoa(status)] = copied
	}
	for _, status := range errorStatuses(route) {
		out[strconv.Itoa(status)] = node{
			"description": http.StatusText(status),
			"content":     node{"application/json": node{"schema": errorRef}},
		}
	}
	if isCall(route) {
		describeCall(out, s, errorRef)
	}
	return out
}

func isCall(route api.Route) bool { return route.Name == "chat" || route.Name == "bypass" }

// describeCall adds the other answers of calls of agents: 202 is a success, and errors about
// the agent have a body of their own.
func describeCall(out node, s *schemas, errorRef node) {
	out["202"] = node{
		"description": "The task is stored and goes on",
		"content":     node{"application/json": node{"schema": s.ref(reflect.TypeFor[api.ChatAccepted](), false)}},
	}
	chatError := s.ref(reflect.TypeFor[api.ChatError](), false)
	for _, status := range []string{"409", "429", "501", "502", "503", "504"} {
		if out[status] == nil {
			continue
		}
		out[status].(node)["content"] = node{"application/json": node{"schema": node{"anyOf": []node{errorRef, chatError}}}}
	}
}

// alsoSuccess has the successes of a route beyond the one in the table.
var alsoSuccess = map[string][]int{
	"cancel":         {http.StatusAccepted},
	"cancelToolTask": {http.StatusAccepted},
	"registerAgent":  {http.StatusOK},
}

func answerContent(route api.Route, s *schemas) node {
	content := node{}
	switch {
	case route.Status == http.StatusSwitchingProtocols:
		return nil // the protocol changes to WebSocket
	case route.Answer != nil:
		content["application/json"] = node{"schema": s.ref(reflect.TypeOf(route.Answer), false)}
	case route.Media == "application/json":
		content[route.Media] = node{"schema": node{"type": "object"}}
	case route.Media != "":
		content[mediaType(route.Media)] = node{"schema": node{"type": "string"}}
	default:
		return nil
	}
	if route.Name == "output" || route.Name == "callTool" || isCall(route) {
		content["text/event-stream"] = node{"schema": node{"type": "string"}}
	}
	if route.Name == "diff" {
		content["text/x-diff"] = node{"schema": node{"type": "string"}}
	}
	return content
}

func mediaType(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return media
}

// errorStatuses returns the error statuses of a route: those of all routes, those in the
// table, and those that follow from its kind.
func errorStatuses(route api.Route) []int {
	list := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusInternalServerError}
	if route.Scope != api.ScopePublic {
		list = append(list, http.StatusUnauthorized, http.StatusTooManyRequests)
	}
	if route.Method != http.MethodGet {
		list = append(list, http.StatusUnsupportedMediaType, http.StatusInsufficientStorage)
	}
	return append(list, route.Errors...)
}
