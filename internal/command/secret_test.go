//go:build unix

package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// A secret is masked in everything that leaves a run, even if it is printed in
// two halves, and as it is encoded in the input's JSON.
func TestSecretsAreHidden(t *testing.T) {
	path, said := fifo(t)
	schema := `{"type":"object","properties":{"token":{"type":"string","writeOnly":true},"password":{"type":"string","format":"password"},"name":{"type":"string"}}}`
	tool := open(t, toolconf.CommandTool{
		InputSchema: []byte(schema), Secrets: []string{"pin"}, Values: []string{"configured-value", "on"},
		Env: map[string]string{"CONFIGURED": "configured-value", "PATH": "/usr/bin:/bin"},
		Command: sh(t, `cat
printf 's3cr'; echo up > `+path+`; sleep 0.2; echo et-token
echo "$CONFIGURED on"
echo s3cret-token 4711 >&2
exit 1`),
	})
	if got := strings.Join(tool.Config().Secrets, " "); got != "password pin token" {
		t.Errorf("the secrets are %s", got)
	}
	input, _ := json.Marshal(map[string]any{"token": "s3cret-token", "password": "pa\"ss<word>", "pin": 4711, "name": "shown"})
	var l log
	o := run(t.Context(), t, tool, command.Run{Input: input, Log: l.take})
	said()
	content, _, _ := tool.Answer(o)
	for _, secret := range []string{"s3cret", "et-token", `pa"ss`, `pa\"ss`, "word>", "4711", "configured-value"} {
		for where, text := range map[string]string{"stdout": o.Stdout, "stderr": o.Stderr, "message": o.Message, "log": l.text.String(), "answer": string(content)} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q: %s", where, secret, text)
			}
		}
	}
	if !strings.HasSuffix(o.Stdout, "\n***\n*** on\n") || o.Stderr != "*** ***\n" || o.Message != "*** ***" || !strings.Contains(o.Stdout, `"name":"shown"`) {
		t.Errorf("stdout %q, stderr %q, message %q", o.Stdout, o.Stderr, o.Message)
	}
}

// A secret is masked at any depth, as the caller wrote it, as programs that
// decode and encode the input write it, and as other JSON libraries do.
func TestSecretsAreHiddenInEveryJSON(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Secrets: []string{"all"}, Command: sh(t, "cat")})
	for _, input := range []string{
		`{"all": "a<b>&c"}`,
		`{"all": "a\u003cb\u003e\u0026c"}`,
		`{"all": {"k": ["a<b>&c", {"k" : "a\u003cb\u003e\u0026c"}]}}`,
		`{"all": {"k": ["\u0061<b>\u0026c"]}}`,
		`{"other": "a\u003cb\u003e\u0026c", "all": {"k": "a<b>&c"}}`,
		`{"other": "pa\u00dfw\ud83d\ude00rt", "all": {"k": "paßw😀rt"}}`,
	} {
		o := run(t.Context(), t, tool, command.Run{Input: json.RawMessage(input)})
		for _, secret := range []string{"a<", `\u0061`, `\u003c`, `\u00df`, "paß"} {
			if strings.Contains(o.Stdout, secret) {
				t.Errorf("%s: %s", input, o.Stdout)
			}
		}
	}
}

// A property that was secret at the time of the call stays secret, even if the
// tool's definition has changed since.
func TestSecretsOfTheCall(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: sh(t, "cat")})
	o := run(t.Context(), t, tool, command.Run{Input: json.RawMessage(`{"key":"s3cret-key","name":"shown"}`), Secrets: []string{"key"}})
	if strings.Contains(o.Stdout, "s3cret") || !strings.Contains(o.Stdout, `"name":"shown"`) {
		t.Error(o.Stdout)
	}
}

// Whatever the schema marks as secret is secret, wherever the mark is.
func TestMarksOfTheSchema(t *testing.T) {
	const secret = `{"type":"string","writeOnly":true}`
	for schema, want := range map[string]string{
		`{"properties":{"a":` + secret + `,"b":{"type":"string"}}}`:                                                               "a",
		`{"properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/$defs/t"}},"$defs":{"s":` + secret + `,"t":{"type":"string"}}}`:   "a",
		`{"properties":{"a":{"properties":{"deep":{"$ref":"#/$defs/s"}}}},"$defs":{"s":{"anyOf":[` + secret + `]}}}`:              "a",
		`{"properties":{"a":{"$ref":"#/$defs/list"}},"$defs":{"list":{"properties":{"next":{"$ref":"#/$defs/list"}}}}}`:           "",
		`{"properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"properties":{"next":{"$ref":"#/$defs/l"},"v":` + secret + `}}}}`: "a",
		`{"allOf":[{"properties":{"a":` + secret + `}}],"if":{},"then":{"properties":{"b":` + secret + `}}}`:                      "a b",
		`{"$ref":"#/$defs/in","$defs":{"in":{"properties":{"a":` + secret + `}}}}`:                                                "a",
	} {
		tool, err := command.New(toolconf.CommandTool{Name: "t", Command: "/bin/true", InputSchema: []byte(schema)}, command.Options{})
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		if got := strings.Join(tool.Config().Secrets, " "); got != want {
			t.Errorf("%s: the secrets are %q, want %q", schema, got, want)
		}
	}
	for _, schema := range []string{`{"additionalProperties":` + secret + `}`, `{"patternProperties":{"^p":` + secret + `}}`} {
		if _, err := command.New(toolconf.CommandTool{Name: "t", Command: "/bin/true", InputSchema: []byte(schema)}, command.Options{}); err == nil || !strings.Contains(err.Error(), "name each secret property") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// Output that is cut off within a secret does not show the secret's
// beginning.
func TestASecretThatIsCutOffIsHidden(t *testing.T) {
	tool := open(t, toolconf.CommandTool{
		Command: sh(t, "exec yes s3cret-token"), Values: []string{"s3cret-token"}, Limits: toolconf.CommandLimits{Output: 24},
	})
	if o := run(t.Context(), t, tool, command.Run{}); o.Stdout != "***\n***" {
		t.Errorf("stdout %q", o.Stdout)
	}
	quiet := open(t, toolconf.CommandTool{Command: sh(t, "printf 'out s3cret-to'"), Values: []string{"s3cret-token"}})
	if o := run(t.Context(), t, quiet, command.Run{}); o.Stdout != "out ***" {
		t.Errorf("stdout %q", o.Stdout)
	}
}

// Configured values are masked in messages about a run that cannot start.
func TestValuesAreHiddenInMessages(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: "/opt/customer-4711/tool", Values: []string{"customer-4711"}})
	wantMessage(t, run(t.Context(), t, tool, command.Run{}), signalbox.ReasonAgentError, "command not found: /opt/***/tool")
}

func TestTooManySecrets(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: "/bin/true", Secrets: []string{"all"}})
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("secret-%d", i))
	}
	input, _ := json.Marshal(map[string]any{"all": many})
	if err := tool.Check(input); signalbox.CodeOf(err) != signalbox.CodeValidation || strings.Contains(err.Error(), "secret-") {
		t.Errorf("%v", err)
	}
	input, _ = json.Marshal(map[string]any{"all": many[:64]})
	if err := tool.Check(input); err != nil {
		t.Error(err)
	}
}
