package child

import (
	"os/exec"
	"strings"
	"testing"
)

// Secrets go to a child in an open file, the director's own secrets to no child, and the
// rest in the child's environment.
func TestSecretsAreHandedOverBesideTheEnvironment(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `/usr/bin/tr '\0' '\n' <&3; echo; echo --; /usr/bin/env`)
	file, err := passEnvironment(cmd, []string{
		"LANG=C", "SIGNALBOX_HOME=/home/x", "SIGNALBOX_TOKEN=ups-own", "SIGNALBOX_SECRET_KEY=key", "SIGNALBOX_STORE=postgres://u:password@h/d",
		"SIGNALBOX_SCHEDULER_TOKEN=of-the-scheduler", "SIGNALBOX_AGENT_TOKEN=ups-own", "SIGNALBOX_LLM_API_KEY=of-the-model", "SIGNALBOX_TOKEN_FILE=/owner/token",
	}, []string{"SIGNALBOX_AGENT_TOKEN=a", "SIGNALBOX_TOKEN=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	handed, env, _ := strings.Cut(string(said), "--\n")
	if want := "SIGNALBOX_AGENT_TOKEN=ups-own\nSIGNALBOX_LLM_API_KEY=of-the-model\nSIGNALBOX_AGENT_TOKEN=a\nSIGNALBOX_TOKEN=b\n"; handed != want { // the last of a name counts
		t.Errorf("handed over:\n%swant:\n%s", handed, want)
	}
	for _, kept := range []string{"LANG=C", "SIGNALBOX_HOME=/home/x", passedEnv + "=1"} {
		if !strings.Contains(env, kept+"\n") {
			t.Errorf("its environment is without %s:\n%s", kept, env)
		}
	}
	for _, secret := range []string{"ups-own", "key\n", "password", "of-the-scheduler", "of-the-model", "TOKEN"} {
		if strings.Contains(env, secret) {
			t.Errorf("its environment has %s:\n%s", secret, env)
		}
	}
}
