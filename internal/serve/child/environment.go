package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve"
)

// passedEnv names the open file with the secret part of this process's environment. The
// system shows the environment that a program was started with to root, and to other
// programs of the user until the program forbids it.
const passedEnv = "SIGNALBOX_ENV_HANDED"

// passEnvironment passes env to a signalbox agent, but with its secrets, and the given
// secrets, in an open file. Close the file once the program has started.
func passEnvironment(cmd *exec.Cmd, env, secrets []string) (io.Closer, error) {
	hidden := append(config.SecretVariables(""), seal.EnvKey, serve.TokenFileEnv)
	ofAgents := config.SecretVariables("agent.")
	passed := []string{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(ofAgents, name):
			passed = append(passed, kv)
		case !slices.Contains(hidden, name):
			cmd.Env = append(cmd.Env, kv)
		}
	}
	file, err := proc.TextFile(strings.Join(append(passed, secrets...), "\x00"))
	if err != nil {
		return nil, fmt.Errorf("hand over its secrets: %w", err)
	}
	name, err := proc.PassFile(cmd, file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("hand over its secrets: %w", err)
	}
	cmd.Env = append(cmd.Env, passedEnv+"="+name)
	return file, nil
}

// InheritEnvironment adds the variables that passEnvironment passed in a file to the
// environment of this process.
func InheritEnvironment() error {
	name := os.Getenv(passedEnv)
	if name == "" {
		return nil
	}
	file, err := proc.InheritedFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", passedEnv, err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("%s: read the environment that was handed over: %w", passedEnv, err)
	}
	for kv := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %w", passedEnv, err)
		}
	}
	return os.Unsetenv(passedEnv)
}
