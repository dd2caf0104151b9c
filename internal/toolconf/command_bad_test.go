package toolconf_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestCommandMistakes has files and all the expected errors about their
// command tools.
func TestCommandMistakes(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"tools", map[string]string{"t.yaml": `commandTools:
  none: {}
  "a b": {command: /bin/sh}
  submit_task: {command: /bin/sh}
  tasks: {command: /bin/sh}
  rest__x: {command: /bin/sh}
  empty: {command: " "}
  list: {command: ["", s3same]}
  args: {command: /bin/sh, args: "s3same", env: {"A=B": s3same, SIGNALBOX_RUN: x}}
  times: {command: /bin/sh, timeout: 8d, timeoutMs: 5}
  long: {command: /bin/sh, timeout: 169h}
  words: {command: /bin/sh, title: 5, description: [a], async: 1, cwd: "", cwdRoot: 5, cwdFrom: ""}
  schema: {command: /bin/sh, inputSchema: [a]}
  type: {command: /bin/sh, inputSchema: {type: array, required: [a]}}
  wrong: {command: /bin/sh, inputSchema: {type: object, properties: {a: 5}}}
  inner:
    command: /bin/sh
    inputSchema:
      type: object
      $defs: {n: {type: string}}
      properties:
        good: {$ref: "#/$defs/n"}
        b:
          type: object
          properties: {c: {type: string, maxLength: -1.5}}
  bad: {command: /bin/sh, inputSchema: {type: object, properties: {a: {minLength: many}}}}
  ref: {command: /bin/sh, inputSchema: {type: object, properties: {a: {$ref: "#/$defs/none"}}}}
  field: {command: /bin/sh, inputSchema: {a: {type: strin}, b: 5, c: {typ: string}}}
  names: {command: /bin/sh, inputSchema: {a: string}, secrets: [b], cwdFrom: c}
  queue: {command: /bin/sh, queue: nowhere, async: true}
  foreign: {command: /bin/sh, providerExecution: {}, timeoutms: 1}
  restart: {command: /bin/sh, restart: never}
  restarts: {command: /bin/sh, restart: {pending: requeue, running: keep, both: fail}}
  limits: {command: /bin/sh, limits: {memory: 1, cpus: 0, cpuTime: -1, processes: 0, fileSize: 1.5B, openFiles: 2, output: lots, disk: 1}}
  limit: {command: /bin/sh, limits: 5}
  sizes: {command: /bin/sh, limits: {memory: 512mb, cpus: many, fileSize: true, output: nan}}
  sandbox: {command: /bin/sh, sandbox: always}
  boxes: {command: /bin/sh, sandbox: {read: [""], kind: jail, network: maybe, mode: on}}
  mode: {command: /bin/sh, sandbox: {write: [x]}}
  var: {command: "${NOT_SET}", args: ["${TOKEN} ${x"]}
  outside: {command: /bin/sh, cwd: .., cwdRoot: .}
  twice: {command: /bin/sh, cwdRoot: ., cwd_root: .}
maxConcurrent: 0
tools: [{name: x, command: y}]
`}, []string{
			`t.yaml:2: commandTools.none: it has no command: want the program to run`,
			`t.yaml:3: commandTools."a b": want 1 to 128 letters, digits, dots, underscores or hyphens as its name`,
			`t.yaml:4: commandTools.submit_task: want another name: submit_task is one of Signalbox's own`,
			`t.yaml:5: commandTools.tasks: want another name: tasks is one of Signalbox's own`,
			`t.yaml:6: commandTools.rest__x: want another name: those of the REST tools begin with rest__`,
			`t.yaml:7: commandTools.empty.command: want a text that is not empty, got another text`,
			`t.yaml:8: commandTools.list.command: want the program first`,
			`t.yaml:9: commandTools.args.args: want a list, each item a text, got a text`,
			`t.yaml:9: commandTools.args.env.A=B: want the name of a variable as the key`,
			`t.yaml:9: commandTools.args.env.SIGNALBOX_RUN: this variable is set by Signalbox for each run: want another name`,
			`t.yaml:10: commandTools.times.timeoutMs: it is the same as timeout, which stands at t.yaml:10: give one of them`,
			`t.yaml:10: commandTools.times.timeout: want a duration from 0s to 168h, such as 90s, 1h30m or a number of seconds, got "8d"`,
			`t.yaml:11: commandTools.long.timeout: want a duration from 0s to 168h, such as 90s, 1h30m or a number of seconds, got "169h"`,
			`t.yaml:12: commandTools.words.cwd: want a folder, got ""`,
			`t.yaml:12: commandTools.words.title: want a text, got the number 5`,
			`t.yaml:12: commandTools.words.description: want a text, got a list`,
			`t.yaml:12: commandTools.words.cwdRoot: want a folder, got a number`,
			`t.yaml:12: commandTools.words.cwdFrom: want the name of a property of the input, got ""`,
			`t.yaml:12: commandTools.words.async: want true or false, got the number 1`,
			`t.yaml:13: commandTools.schema.inputSchema: want a JSON Schema of an object, or a section of fields, got a list`,
			`t.yaml:14: commandTools.type.inputSchema.type: want object: the input of a tool is one`,
			`t.yaml:15: commandTools.wrong.inputSchema.properties.a: it is not a JSON Schema: want a section`,
			`t.yaml:25: commandTools.inner.inputSchema.properties.b.properties.c: it is not a JSON Schema: not an integer value`,
			`t.yaml:26: commandTools.bad.inputSchema.properties.a: it is not a JSON Schema: a value is not an int`,
			`t.yaml:27: commandTools.ref.inputSchema.properties.a: it is not a JSON Schema: JSON Pointer "/$defs/none": no key "none" in map`,
			`t.yaml:28: commandTools.field.inputSchema.a.type: want one of string, number, integer, boolean, array, object, null, any: did you mean string?`,
			`t.yaml:28: commandTools.field.inputSchema.b: want a type, or a section with one, got the number 5`,
			`t.yaml:29: commandTools.names.secrets: it names the property b, which inputSchema does not have`,
			`t.yaml:29: commandTools.names: cwdFrom names the property c, which inputSchema does not have`,
			`t.yaml:31: commandTools.foreign.providerExecution: there is no such key`,
			`t.yaml:31: commandTools.foreign.timeoutms: there is no such key: did you mean timeoutMs?`,
			`t.yaml:32: commandTools.restart.restart: want fail, requeue or keep, got "never"`,
			`t.yaml:33: commandTools.restarts.restart.pending: want keep or fail, got "requeue"`,
			`t.yaml:33: commandTools.restarts.restart.running: want fail or requeue, got "keep"`,
			`t.yaml:33: commandTools.restarts.restart.both: there is no such key`,
			`t.yaml:34: commandTools.limits.limits.memory: want a size from 1MiB to 1024TiB, such as 512MiB, 512MB or a number of bytes, got the number 1`,
			`t.yaml:34: commandTools.limits.limits.cpus: want how many cores' worth of time, from 0.01 to 10000, such as 0.5, got the number 0`,
			`t.yaml:34: commandTools.limits.limits.cpuTime: want a duration from 1ms to 168h, such as 90s, 1h30m or a number of seconds, got the number -1`,
			`t.yaml:34: commandTools.limits.limits.processes: want a whole number from 1 to 1000000, got the number 0`,
			`t.yaml:34: commandTools.limits.limits.fileSize: want a size from 1B to 1024TiB, such as 512MiB, 512MB or a number of bytes, got "1.5B"`,
			`t.yaml:34: commandTools.limits.limits.openFiles: want a whole number from 8 to 1000000, got the number 2`,
			`t.yaml:34: commandTools.limits.limits.output: want a size from 1B to 1TiB, such as 512MiB, 512MB or a number of bytes, got "lots"`,
			`t.yaml:34: commandTools.limits.limits.disk: there is no such key`,
			`t.yaml:35: commandTools.limit.limits: want a section of keys and values, got a number`,
			`t.yaml:36: commandTools.sizes.limits.memory: want a size from 1MiB to 1024TiB, such as 512MiB, 512MB or a number of bytes, got "512mb"`,
			`t.yaml:36: commandTools.sizes.limits.cpus: want how many cores' worth of time, from 0.01 to 10000, such as 0.5, got "many"`,
			`t.yaml:36: commandTools.sizes.limits.fileSize: want a size from 1B to 1024TiB, such as 512MiB, 512MB or a number of bytes, got the boolean true`,
			`t.yaml:36: commandTools.sizes.limits.output: want a size from 1B to 1TiB, such as 512MiB, 512MB or a number of bytes, got "nan"`,
			`t.yaml:37: commandTools.sandbox.sandbox: want off, auto or required, got "always"`,
			`t.yaml:38: commandTools.boxes.sandbox.mode: want off, auto or required, got "on"`,
			`t.yaml:38: commandTools.boxes.sandbox.kind: want bubblewrap or landlock, got "jail"`,
			`t.yaml:38: commandTools.boxes.sandbox.read[0]: want a folder, got ""`,
			`t.yaml:38: commandTools.boxes.sandbox.network: want true or false, got "maybe"`,
			`t.yaml:39: commandTools.mode.sandbox: it has no mode: want auto (where this machine has a sandbox) or required (a run without it is refused)`,
			`t.yaml:40: commandTools.var.args[0]: a ${ has no end: want ${NAME}, or $${ for a ${ that stays`,
			`t.yaml:40: commandTools.var.command: the environment variable NOT_SET is not set`,
			`t.yaml:41: commandTools.outside: its cwd does not lie within its cwdRoot`,
			`t.yaml:42: commandTools.twice.cwd_root: it is the same as cwdRoot, which stands at t.yaml:42: give one of them`,
			`t.yaml:44: tools: want the tools under commandTools, each by its name, such as commandTools: {NAME: {command: …}}`,
			`t.yaml:43: maxConcurrent: want a whole number from 1 to 10000, got the number 0`,
			`t.yaml:30: commandTools.queue.queue: there is no tool queue named nowhere: want it under queues, or one of default`,
		}},
		{"between files", map[string]string{
			"a.yaml": "commandTools:\n  one: {command: /bin/sh}\n  two: {command: /bin/sh}\nmcpServers:\n  shop: {command: x}\n  commands: {command: x}\nopenapiSpecs:\n  signalbox: {spec: x}\n",
			"b.json": "{\"tools\": [\n{\"name\": \"one\", \"command\": \"/bin/ls\"},\n{\"name\": \"three\", \"command\": \"/bin/sh\"},\n{\"name\": \"three\", \"command\": \"/bin/sh\"},\n{\"name\": \"shop__x\", \"command\": \"/bin/sh\"},\n" +
				"{\"name\": \"times\", \"command\": \"/bin/sh\", \"timeout\": 5, \"timeoutMs\": 6},\n{\"name\": \"args\", \"command\": \"/bin/sh\", \"args\": [{}, \"${NOT_SET}\"]}],\n\"maxParallelTasks\": 4, \"maxConcurrent\": 5}",
		}, []string{
			`a.yaml:6: mcpServers.commands: want another name: commands is what Signalbox's own tools stand under`,
			`a.yaml:8: openapiSpecs.signalbox: want another name: signalbox is what Signalbox's own tools stand under`,
			`b.json:2: tools.one: there is already another tool of that name, at a.yaml:2: give one of them another name, or switch it off with enabled: false`,
			`b.json:4: tools.three: there is already a tool of that name, at b.json:3: give one of them another name`,
			`b.json:6: tools.times.timeout: it differs from timeoutMs, which is at b.json:6: give one of them`,
			`b.json:7: tools.args.args[0]: want a text, got a section`,
			`b.json:7: tools.args.args[1]: the environment variable NOT_SET is not set`,
			`b.json:8: maxParallelTasks: it is the same as maxConcurrent, which stands at b.json:8: give one of them`,
			`b.json:5: want another name than shop__x: those of the tools of the server at a.yaml:5 begin with shop__`,
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
