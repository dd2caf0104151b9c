package main

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
)

// handedEnv says that the process is handed the secret part of its environment
// in the open file handedFile: what is in the environment of a program from its
// start is shown by the system to root, and to others of the user until the
// program forbids it.
const (
	handedEnv  = "SIGNALBOX_ENV_HANDED"
	handedFile = 3 // the first of exec.Cmd.ExtraFiles
)

// handOver gives a program, another agent of ours, this environment without its
// secrets, and these beside it. Close the file once the program has started.
func handOver(cmd *exec.Cmd, env, secrets []string) (io.Closer, error) {
	hidden := append(config.SecretVariables(""), seal.EnvKey, tokenFileEnv)
	ofAgents := config.SecretVariables("agent.")
	handed := []string{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(ofAgents, name):
			handed = append(handed, kv)
		case !slices.Contains(hidden, name):
			cmd.Env = append(cmd.Env, kv)
		}
	}
	file, err := proc.TextFile(strings.Join(append(handed, secrets...), "\x00"))
	if err != nil {
		return nil, fmt.Errorf("hand over its secrets: %w", err)
	}
	cmd.Env = append(cmd.Env, handedEnv+"=1")
	cmd.ExtraFiles = []*os.File{file}
	return file, nil
}

// takeOver reads what handOver handed to this process into its environment.
func takeOver() error {
	if os.Getenv(handedEnv) == "" {
		return nil
	}
	file := os.NewFile(handedFile, handedEnv)
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("%s: read the environment that was handed over: %w", handedEnv, err)
	}
	for kv := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %w", handedEnv, err)
		}
	}
	return os.Unsetenv(handedEnv)
}
