package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// workFile is the name of the configuration that is found in the working
// folder, which may be that of somebody else's repository.
const workFile = "signalbox.yaml"

// guarded are the keys that count in a file of the working folder only once
// the user has said so: they start programs, say what agents may do, or lead
// tokens, prompts and data elsewhere.
var guarded = []string{
	"director", "director_url", "token", "token_file", "open", "store", "data", "tools", "mcpServers", "commandTools", "restTools", "openapiSpecs", "agents",
	"agent.command", "agent.args", "agent.terminal_command", "agent.home", "agent.directors", "agent.permission_mode", "agent.pass_env", "agent.project_roots",
	"agent.task_env", "agent.llm.approval", "agent.llm.exempt", "hosts", "public_hosts",
	"agent.token", "agent.llm.base_url", "agent.llm.tools", "agent.llm.api_key", "scheduler.token",
}

// Untrusted is a file of the working folder with keys that count only once the
// user has trusted it.
type Untrusted struct {
	Path string   // absolute
	Keys []string // those keys
	mark string   // where it is noted that it is trusted
}

// confirmWorkFile asks about keys that are guarded, unless the file is trusted.
func confirmWorkFile(path string, root node, src Sources) error {
	u, err := untrusted(path, root, Home(src.Env))
	if err != nil || u == nil {
		return err
	}
	if src.Ask != nil {
		yes, err := src.Ask(*u)
		if err != nil {
			return err
		}
		if yes {
			return u.trust()
		}
	}
	return fmt.Errorf("it sets %s, which a file of the working folder may only once you have looked at it: signalbox trust, or name it with --config %s",
		strings.Join(u.Keys, ", "), workFile)
}

// ownFile refuses a file, or a link to one, that others can write or have made.
func ownFile(path string) error {
	link, err := os.Lstat(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // of a folder the reader says so
		return errors.New("want a file, which it is not")
	}
	stat, ok := link.Sys().(*syscall.Stat_t)
	if made := !ok || stat.Uid == 0 || int(stat.Uid) == os.Getuid(); made && Own(info) {
		return nil
	}
	return fmt.Errorf("it is not read: another user owns it or can write to it (mode %04o); chmod go-w it if it is yours, or name the file to use with --config", info.Mode().Perm())
}

// untrusted returns what the user is to be asked about a file; nil where there
// is nothing to ask, or it was answered.
func untrusted(path string, root node, home string) (*Untrusted, error) {
	keys := guardedKeys(root)
	if len(keys) == 0 {
		return nil, nil
	}
	if home == "" {
		return nil, errors.New("there is no folder to note in that it is trusted: neither HOME nor " + HomeEnv + " is set")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n", len(path), path)
	sum.Write(data)
	u := &Untrusted{Path: path, Keys: keys, mark: filepath.Join(home, "trusted", hex.EncodeToString(sum.Sum(nil)))}
	if _, err := os.Lstat(u.mark); err == nil {
		return nil, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return u, nil
}

// trust notes that the file, as it is, is trusted where it is.
func (u *Untrusted) trust() error {
	if err := ownFolder(filepath.Dir(u.mark)); err != nil {
		return err
	}
	return os.WriteFile(u.mark, []byte(u.Path+"\n"), 0o600)
}

// guardedKeys are the keys of a file that are guarded, in its order.
func guardedKeys(root node) []string {
	var out []string
	var walk func(n node, prefix string)
	walk = func(n node, prefix string) {
		if n == nil || n.Form != conffile.Section {
			return
		}
		for _, pair := range n.Pairs {
			key := prefix + pair.Key
			if slices.Contains(guarded, key) {
				out = append(out, key)
			} else {
				walk(pair.Value, key+".")
			}
		}
	}
	walk(root, "")
	return out
}

// Trust notes that a file of a working folder is trusted as it is now, and
// returns which of its keys that concerns; none where there was nothing to
// note.
func Trust(path string, env func(string) (string, bool)) ([]string, error) {
	if err := ownFile(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	root, err := conffile.Read(path, conffile.YAML)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	u, err := untrusted(path, root, Home(env))
	if err != nil || u == nil {
		return nil, err
	}
	return u.Keys, u.trust()
}
