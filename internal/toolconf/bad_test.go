package toolconf_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestMistakes has files and all the expected errors. The files of one case
// are read in the order of their names.
func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"queues", map[string]string{"t.yaml": `queues:
  default: {concurrent: 0}
  a: {}
  b: {concurrent: 1.5, max_wait: soon, max_waiters: -1}
  c: {concurrent: "4", session: {idle: 0, max_hold: 25h, held: 1}}
  "d d": {concurrent: 1}
  e: 4
  f: {concurrent: many, session: 5, maxWaitMs: 1s5}
  g: {concurrent: 1, max_wait: 5, maxWaitMs: 5}
  a: {concurrent: 1}
  h: {concurrent: true, concurent: 1}
  i: {concurrent: 9999999, maxWaitMs: -1, shared: maybe}
  j: {concurrent: 1, rate: 5, per: nobody}
  k: {concurrent: 1, rate: {n: 0, burst: 0}, per: {argument: ""}}
  l: {concurrent: 1, rate: {n: 1, per: 31d}, per: {}}
  m: {concurrent: 1, rate: {n: 1, per: 24h, burst: 1000, each: 1}, per: [caller]}
`}, []string{

			`t.yaml:10: queues.a: it stands twice, first at t.yaml:3`,
			`t.yaml:2: queues.default.concurrent: want a whole number from 1 to 1000000, got the number 0`,
			`t.yaml:3: queues.a: it has no concurrent: want how many calls may run side by side, such as concurrent: 4`,
			`t.yaml:4: queues.b.concurrent: want a whole number from 1 to 1000000, got the number 1.5`,
			`t.yaml:4: queues.b.max_wait: want a duration from 0s to 24h, such as 90s, 1h30m or a number of seconds, got "soon"`,
			`t.yaml:4: queues.b.max_waiters: want a whole number from 0 to 1000000, got the number -1`,
			`t.yaml:5: queues.c.concurrent: want a whole number from 1 to 1000000, got "4"`,
			`t.yaml:5: queues.c.session.idle: want a duration from 1ms to 24h, such as 90s, 1h30m or a number of seconds, got the number 0`,
			`t.yaml:5: queues.c.session.max_hold: want a duration from 0s to 24h, such as 90s, 1h30m or a number of seconds, got "25h"`,
			`t.yaml:5: queues.c.session.held: there is no such key`,
			`t.yaml:6: queues."d d": want a queue's name: 1 to 64 letters, digits, dots, underscores or hyphens`,
			`t.yaml:7: queues.e: want a section of keys and values, got a number`,
			`t.yaml:8: queues.f.concurrent: want a whole number from 1 to 1000000, got "many"`,
			`t.yaml:8: queues.f.maxWaitMs: want a number of milliseconds from 0 to 86400000, got "1s5"`,
			`t.yaml:8: queues.f.session: want true, or a section with idle and max_hold, got the number 5`,
			`t.yaml:9: queues.g.maxWaitMs: it is the same as max_wait, which stands at t.yaml:9: give one of them`,
			`t.yaml:11: queues.h.concurrent: want a whole number from 1 to 1000000, got the boolean true`,
			`t.yaml:11: queues.h.concurent: there is no such key: did you mean concurrent?`,
			`t.yaml:12: queues.i.concurrent: want a whole number from 1 to 1000000, got the number 9999999`,
			`t.yaml:12: queues.i.maxWaitMs: want a number of milliseconds from 0 to 86400000, got the number -1`,
			`t.yaml:12: queues.i.shared: want true or false, got "maybe"`,
			`t.yaml:13: queues.j.rate: want a section of keys and values, got a number`,
			`t.yaml:13: queues.j.per: want caller, session, or {argument: NAME} for the value of an argument of the calls, got "nobody"`,
			`t.yaml:14: queues.k.rate: want n and per, how many calls start in how long, such as {n: 60, per: 1m, burst: 10}`,
			`t.yaml:14: queues.k.rate.n: want a whole number from 1 to 1000000, got the number 0`,
			`t.yaml:14: queues.k.rate.burst: want a whole number from 1 to 1000000, got the number 0`,
			`t.yaml:14: queues.k.per.argument: want the name of an argument, of 1 to 64 characters, got ""`,
			`t.yaml:15: queues.l.rate.per: want a duration from 1ms to 744h, such as 90s, 1h30m or a number of seconds, got "31d"`,
			`t.yaml:15: queues.l.per: want caller, session, or {argument: NAME} for the value of an argument of the calls`,
			`t.yaml:16: queues.m.rate: a burst of 1000 is saved in more than a year at 1 in 24h0m0s; lower the burst`,
			`t.yaml:16: queues.m.rate.each: there is no such key`,
			`t.yaml:16: queues.m.per: want caller, session, or {argument: NAME} for the value of an argument of the calls, got a list`,
		}},
		{"two that differ in per", map[string]string{"a.yaml": "queues: {default: {concurrent: 1}, q: {concurrent: 1, per: caller}}", "b.yaml": "queues: {q: {concurrent: 1}}"}, []string{
			`b.yaml:1: queues.q: its per is not the same as at a.yaml:1: want the same in both, for what each the limits hold`,
		}},
		{"no default", map[string]string{"t.json": `{"queues": {"browser": {"concurrent": 1}}, "mcpServers": {"a": {"command": "x"}}}`}, []string{
			`t.json:1: queues: there is no queue named default, which is for the tools that name none: want default: {concurrent: 64} beside the others`,
		}},
		{"servers", map[string]string{"t.yaml": `mcpServers:
  both: {command: x, url: http://h/mcp}
  none: {}
  odd: {type: carrier-pigeon, command: x}
  nocommand: {type: stdio}
  nourl: {type: http}
  wrongurl: {type: sse, url: "ws://u:s3same@h/"}
  wrongws: {type: websocket, url: "http://h/?key=s3same"}
  mixed: {type: http, url: "http://h/", command: x}
  headers: {command: x, headers: {a: b}}
  a__b: {command: x}
  a_: {command: x}
  rest: {command: x}
  "a b": {command: x}
  "": {command: x}
  lists: {command: x, args: s3same, env: [a], toolsAllowed: [""], toolsDenied: [[a]]}
  values: {command: x, env: {"A=B": "s3same", C: [s3same]}, shared: 1, healthProbe: always, requestTimeoutMs: 0, timeout: 2d}
  heads: {url: http://h/, headers: {"a b": x, good: "s3same\r\nx: y", auth: "Bearer ${NOT_SET} s3same", open: "s3same ${x s3same", bad: "${s3same!}"}}
  queue: {command: x, queue: "a b", toolQueues: {t: nowhere, "": default}}
  command: {command: "", cwd: 5}
  program: {command: ["", s3same]}
  twice: {command: x, command: y}
  twice: {command: x}
  unknown: {command: x, autoApprove: [], toolsallowed: []}
  text: just
  retired: {command: x, maxConcurrentTools: 3}
`}, []string{
			`t.yaml:23: mcpServers.twice: it stands twice, first at t.yaml:22`,
			`t.yaml:2: mcpServers.both: it has both a command and a url: want one of them, or a type that says which counts`,
			`t.yaml:3: mcpServers.none: it has neither a command nor a url: want the command that starts the server, or the url where it is`,
			`t.yaml:4: mcpServers.odd.type: want stdio, http, sse or websocket, got "carrier-pigeon"`,
			`t.yaml:5: mcpServers.nocommand: it has no command: want the one that starts the server`,
			`t.yaml:6: mcpServers.nourl: it has no url: want the one where the server is`,
			`t.yaml:7: mcpServers.wrongurl.url: want a URL such as http://127.0.0.1:3000/mcp, got another text`,
			`t.yaml:8: mcpServers.wrongws.url: want a URL such as ws://127.0.0.1:3000/mcp, got another text`,
			`t.yaml:9: mcpServers.mixed: it is reached by its url: command, args, env and cwd are for servers that are started here`,
			`t.yaml:10: mcpServers.headers: it is started by a command: url and headers are for servers elsewhere`,
			`t.yaml:11: mcpServers.a__b: want a name without two underscores in a row, and none at its end: they stand between it and a tool's name`,
			`t.yaml:12: mcpServers.a_: want a name without two underscores in a row, and none at its end: they stand between it and a tool's name`,
			`t.yaml:13: mcpServers.rest: want another name: those of the REST tools begin with rest__`,
			`t.yaml:14: mcpServers."a b": want 1 to 64 letters, digits, underscores or hyphens as its name`,
			`t.yaml:15: mcpServers."": want 1 to 64 letters, digits, underscores or hyphens as its name`,
			`t.yaml:16: mcpServers.lists.args: want a list, each item a text, got a text`,
			`t.yaml:16: mcpServers.lists.env: want a section of keys and values, got a list`,
			`t.yaml:16: mcpServers.lists.toolsAllowed[0]: want the name of a tool, got ""`,
			`t.yaml:16: mcpServers.lists.toolsDenied[0]: want the name of a tool, got a list`,
			`t.yaml:17: mcpServers.values.env.A=B: want the name of a variable as the key`,
			`t.yaml:17: mcpServers.values.env.C: want a text, got a list`,
			`t.yaml:17: mcpServers.values.shared: want true or false, got the number 1`,
			`t.yaml:17: mcpServers.values.healthProbe: want ping, listTools or off, got "always"`,
			`t.yaml:17: mcpServers.values.requestTimeoutMs: it is the same as timeout, which stands at t.yaml:17: give one of them`,
			`t.yaml:17: mcpServers.values.timeout: want a duration from 1ms to 24h, such as 90s, 1h30m or a number of seconds, got "2d"`,
			`t.yaml:18: mcpServers.heads.headers."a b": want the name of a header as the key`,
			`t.yaml:18: mcpServers.heads.headers.good: want a text of one line, got another text`,
			`t.yaml:18: mcpServers.heads.headers.auth: the environment variable NOT_SET is not set`,
			`t.yaml:18: mcpServers.heads.headers.open: a ${ has no end: want ${NAME}, or $${ for a ${ that stays`,
			`t.yaml:18: mcpServers.heads.headers.bad: what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays`,
			`t.yaml:19: mcpServers.queue.queue: want a queue's name: 1 to 64 letters, digits, dots, underscores or hyphens, got "a b"`,
			`t.yaml:19: mcpServers.queue.toolQueues."": want the name of a tool as the key`,
			`t.yaml:20: mcpServers.command.command: want a text that is not empty, got ""`,
			`t.yaml:20: mcpServers.command.cwd: want a text that is not empty, got a number`,
			`t.yaml:21: mcpServers.program.command: want the program first`,
			`t.yaml:22: mcpServers.twice.command: it stands twice, first at t.yaml:22`,
			`t.yaml:24: mcpServers.unknown.autoApprove: there is no such key`,
			`t.yaml:24: mcpServers.unknown.toolsallowed: there is no such key: did you mean toolsAllowed?`,
			`t.yaml:25: mcpServers.text: want a section of keys and values, got a text`,
			`t.yaml:26: mcpServers.retired.maxConcurrentTools: this key is retired: what bounds the calls of tools is the capacity of their queue, queues.NAME.concurrent, for all sessions together`,
			`t.yaml:19: mcpServers.queue.toolQueues.t: there is no tool queue named nowhere: want it under queues, or one of default`,
		}},
		{"rest", map[string]string{"t.yaml": `restTools:
  none: {}
  a/b: {url: "http://h/"}
  method: {method: BREW, url: "http://h/"}
  host: {url: "https://${parameters.host}/"}
  scheme: {url: "${parameters.scheme}://h/"}
  url: {url: "h/s3same"}
  schema: {url: "http://h/", parametersSchema: [a]}
  type: {url: "http://h/", parametersSchema: {type: array}}
  missing:
    url: "http://h/${parameters.a}?b=${parameters.b.c}"
    method: POST
    headers: {X: "${parameters.d} ${TOKEN}"}
    bodyTemplate: {e: "${parameters.e}"}
    parametersSchema: {type: object, properties: {a: {type: string}}}
  body: {url: "http://h/", method: POST, bodyTemplate: {a: "${NOT_SET}"}}
  twice: {url: "http://h/", method: POST, bodyTemplate: {a: 1, b: {c: 1, c: 2}}}
  number: {url: "http://h/", method: POST, bodyTemplate: .nan}
  timeout: {url: "http://h/", timeout: 5, timeoutMs: 5000}
  stream: {url: "http://h/", streaming: {}}
`}, []string{
			`t.yaml:2: restTools.none: it has no url: want the one that it calls`,
			`t.yaml:3: restTools.a/b: want 1 to 64 letters, digits, underscores or hyphens as its name`,
			`t.yaml:4: restTools.method.method: want one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, got "BREW"`,
			`t.yaml:5: restTools.host.url: want a scheme and host without parameters: a call may only fill in what comes after`,
			`t.yaml:6: restTools.scheme.url: want a scheme and host without parameters: a call may only fill in what comes after`,
			`t.yaml:7: restTools.url.url: want a URL such as https://api.example.com/search?q=${parameters.query}, got another text`,
			`t.yaml:8: restTools.schema.parametersSchema: want a JSON Schema of an object, got a list`,
			`t.yaml:9: restTools.type.parametersSchema.type: want object: the arguments of a tool are one`,
			`t.yaml:10: restTools.missing: a template names the parameter b, which parametersSchema does not have`,
			`t.yaml:10: restTools.missing: a template names the parameter d, which parametersSchema does not have`,
			`t.yaml:10: restTools.missing: a template names the parameter e, which parametersSchema does not have`,
			`t.yaml:16: restTools.body.bodyTemplate: the environment variable NOT_SET is not set`,
			`t.yaml:17: restTools.twice.bodyTemplate: the key "c" stands twice, first at line 17`,
			`t.yaml:18: restTools.number.bodyTemplate: the number .nan cannot be written in JSON`,
			`t.yaml:19: restTools.timeout.timeoutMs: it is the same as timeout, which stands at t.yaml:19: give one of them`,
			`t.yaml:20: restTools.stream.streaming: there is no such key`,
		}},
		{"openapi", map[string]string{"t.yaml": `openapiSpecs:
  none: {}
  url: {spec: "http:///x"}
  base: {spec: a.yaml, baseUrl: "ftp://s3same"}
  filters: {spec: a.yaml, includeMethods: [GET, BREW], tagFilter: [""], toolNamePrefix: "a b"}
  queue: {spec: a.yaml, queue: nowhere, toolQueues: {list: elsewhere}}
  a__b: {spec: a.yaml}
`}, []string{
			`t.yaml:2: openapiSpecs.none: it has no spec: want the file or URL of its description`,
			`t.yaml:3: openapiSpecs.url.spec: want a file, or a URL such as https://api.example.com/openapi.json, got another text`,
			`t.yaml:4: openapiSpecs.base.baseUrl: want a URL such as https://api.example.com/v1, got another text`,
			`t.yaml:5: openapiSpecs.filters.includeMethods[1]: want one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, got "BREW"`,
			`t.yaml:5: openapiSpecs.filters.tagFilter[0]: want a tag, got ""`,
			`t.yaml:5: openapiSpecs.filters.toolNamePrefix: want at most 32 letters, digits, underscores or hyphens, got "a b"`,
			`t.yaml:7: openapiSpecs.a__b: want a name without two underscores in a row, and none at its end: they stand between it and a tool's name`,
			`t.yaml:6: openapiSpecs.queue.queue: there is no tool queue named nowhere: want it under queues, or one of default`,
			`t.yaml:6: openapiSpecs.queue.toolQueues.list: there is no tool queue named elsewhere: want it under queues, or one of default`,
		}},
		{"sections", map[string]string{"t.yaml": "queues: [a]\nmcpServers: 5\nrestTools: text\nopenapiSpecs: true\nmcpServer: {}\n", "u.yaml": "- a\n", "v.json": `"text"`}, []string{
			`t.yaml:1: queues: want a section of keys and values, got a list`,
			`t.yaml:2: mcpServers: want a section of keys and values, got a number`,
			`t.yaml:3: restTools: want a section of keys and values, got a text`,
			`t.yaml:4: openapiSpecs: want a section of keys and values, got a boolean`,
			`t.yaml:5: mcpServer: there is no such key: did you mean mcpServers?`,
			`u.yaml:1: want a section of keys and values, got a list`,
			`v.json:1: want a section of keys and values, got a text`,
		}},
		{"between files", map[string]string{
			"a.yaml": "mcpServers:\n  one: {command: x}\n  spec: {command: x}\nrestTools:\n  r: {url: 'http://h/'}\nopenapiSpecs:\n  api: {spec: a.json}\n",
			"b.json": "{\"mcpServers\": {\n\"one\": {\"command\": \"y\"},\n\"api\": {\"command\": \"x\"}},\n\"restTools\": {\"r\": {\"url\": \"http://h/2\"}},\n\"openapiSpecs\": {\"spec\": {\"spec\": \"a.json\"},\n\"api\": {\"spec\": \"b.json\"}}}",
		}, []string{
			`b.json:2: mcpServers.one: there is already another server of that name, at a.yaml:2: give one of them another name, or switch it off with enabled: false`,
			`b.json:3: mcpServers.api: there is already a description of that name, at a.yaml:7: give one of them another name, or switch it off with enabled: false`,
			`b.json:4: restTools.r: there is already another tool of that name, at a.yaml:5: give one of them another name, or switch it off with enabled: false`,
			`b.json:5: openapiSpecs.spec: there is already a server of that name, at a.yaml:3: give one of them another name, or switch it off with enabled: false`,
			`b.json:6: openapiSpecs.api: there is already another description of that name, at a.yaml:7: give one of them another name, or switch it off with enabled: false`,
		}},
		{"aliases", map[string]string{"t.yaml": "mcpServers:\n  a: {command: *none, args: [*none], env: {A: *none}}\n  b: *none\n  c: {command: x, <<: {a: b}}\n  d: {command: !!str x}\n"}, []string{
			`t.yaml:2: mcpServers.a.args[0]: the alias *none stands for nothing`,
			`t.yaml:2: mcpServers.a.command: the alias *none stands for nothing`,
			`t.yaml:2: mcpServers.a.env.A: the alias *none stands for nothing`,
			`t.yaml:3: mcpServers.b: the alias *none stands for nothing`,
			`t.yaml:4: mcpServers.c.<<: there is no such key`,
			`t.yaml:5: mcpServers.d.command: tags and merge keys are not supported here: write the value out, in quotes where it is a text`,
		}},
		{"JSON", map[string]string{"a.json": "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": s3same}\n\t}\n}\n", "b.json": "{} {}", "c.json": "{\"mcpServers\":\n{\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"x\"}}}", "d.json": strings.Repeat("[", 200) + strings.Repeat("]", 200), "e.json": "[]"}, []string{
			`a.json:3: it is not JSON: invalid character 's' looking for beginning of value`,
			`b.json:1: it is not JSON: invalid character '{' after top-level value`,
			`c.json:3: mcpServers.a: it stands twice, first at c.json:2`,
			`d.json:1: it is nested more than 100 levels deep`,
			`e.json:1: want a section of keys and values, got a list`,
		}},
		{"YAML", map[string]string{"a.yaml": "a: [\n", "b.yaml": "a: 1\n---\nb: 2\n", "c.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200), "d.yaml": strings.Repeat("- ", 200), "e.yaml": strings.Repeat("\n{a: ", 2000)}, []string{
			`a.yaml:1: it is not YAML: sequence end token ']' not found`,
			`b.yaml:3: the file holds a second document: want one`,
			`c.yaml:1: it is nested more than 100 levels deep`,
			`d.yaml:1: it is nested more than 100 levels deep`,
			`e.yaml:1002: it is nested more than 100 levels deep`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.files)
			_, bad := w.load(slices.Sorted(maps.Keys(test.files))...)
			got := problems(bad)
			equal(t, "mistakes", got, test.want)
			if text := strings.Join(got, "\n"); strings.Contains(text, "s3same") {
				t.Errorf("a secret is shown:\n%s", text)
			}
		})
	}
}
