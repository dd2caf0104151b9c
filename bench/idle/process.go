package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
)

func startDirector(ctx context.Context, dir string) (*director.Process, error) {
	binary, err := director.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "warn")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "SIGNALBOX_HOME="+data)
	return director.Start(cmd)
}
