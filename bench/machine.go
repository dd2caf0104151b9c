package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

// peers are the modules whose versions are reported.
var peers = map[string]string{
	"github.com/riverqueue/river":            "River",
	"github.com/hibiken/asynq":               "Asynq",
	"github.com/mikestefanello/backlite":     "backlite",
	"golang.org/x/sync":                      "golang.org/x/sync",
	"modernc.org/sqlite":                     "modernc.org/sqlite",
	"github.com/modelcontextprotocol/go-sdk": "MCP SDK",
}

// lookAround describes this machine.
func lookAround(dir string) (results.Machine, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	m := results.Machine{CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), CPU: cpuModel(), Versions: map[string]string{}}
	var err error
	if m.Disk, err = fileSystem(dir); err != nil {
		return m, err
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(kernel))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if name := peers[d.Path]; name != "" {
				m.Versions[name] = d.Version
			}
		}
	}
	m.Versions["River on SQLite"] = versionIn("riversqlite/go.mod", "github.com/riverqueue/river ")
	m.Versions["PostgreSQL"] = says("psql", "--version")
	m.Versions["Redis"] = says("redis-server", "--version")
	return m, nil
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// magic maps the numbers of statfs to file systems.
var magic = map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay"}

// fileSystem refuses a file system in memory: syncs cost nothing there, so all figures
// would be too good.
func fileSystem(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	name := magic[int64(st.Type)]
	if name == "tmpfs" {
		return "", fmt.Errorf("%s is in memory (tmpfs), where nothing is durable: name a folder on a disk with -dir", dir)
	}
	if name == "" {
		name = fmt.Sprintf("file system %#x", st.Type)
	}
	return name, nil
}

func versionIn(file, module string) string {
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(text), module)
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

// says returns the number in a program's version output.
func says(name string, arg string) string {
	text, err := exec.Command(name, arg).Output()
	if err != nil {
		return "not found"
	}
	for _, word := range strings.Fields(strings.ReplaceAll(string(text), "v=", "")) {
		if word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return strings.TrimSpace(string(text))
}
