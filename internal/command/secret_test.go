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

// A secret is hidden in all that leaves a run, also where it is printed in two
// halves, and as the JSON of the input has it.
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

// A run that is cut off in the midst of a secret does not show its beginning.
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

// A value of the configuration does not show where a run cannot begin.
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
