package proc

import "os/exec"

// startBound starts a program: macOS has no signal for a parent's death.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }
