package config

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/atomicfile"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// maxSecretFile bounds a token file, in bytes.
const maxSecretFile = 4096

// EnsureSecret returns the secret in a file, and creates both if there is no
// file. Processes that start concurrently all get the same secret.
//
// Errors: those of ReadSecret; a file of another user, who may have put it
// there; and, if the file does not exist, a folder to which others can write.
func EnsureSecret(path string) (string, error) {
	secret, err := ownSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return "", err
	}
	draft, err := atomicfile.Draft(path, []byte(rand.Text()+rand.Text()+"\n")) // 260 bits
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(draft) }()
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) { // atomic; the first one wins
		return "", err
	}
	return ownSecret(path)
}

// ownSecret returns the secret in a file that no other user can have created.
func ownSecret(path string) (string, error) {
	secret, info, err := readSecret(path)
	if err == nil && !Own(path, info) {
		return "", fmt.Errorf("%s belongs to another user, who knows its content: remove it, and make sure that nobody else can write to its folder", path)
	}
	return secret, err
}

// ownFolder creates a folder that only its owner can use, or makes sure that
// no other user can write to the existing one.
func ownFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !Own(path, info) {
		return fmt.Errorf("%s cannot hold a token: it must be your folder, and no other user may be able to write to it (chmod go-w %s)", path, path)
	}
	return nil
}

// Own reports whether a file or folder belongs to the user of this process or
// to root, and no other user can write to it.
func Own(path string, info fs.FileInfo) bool {
	return info.Mode().Perm()&0o022&permBits == 0 && ours(path, info)
}

// ReadSecret returns the token in a file.
//
// Errors: fs.ErrNotExist; a file that is empty, not regular, too long, or
// readable by other users of the machine.
func ReadSecret(path string) (string, error) {
	secret, _, err := readSecret(path)
	return secret, err
}

func readSecret(path string) (string, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxSecretFile:
		return "", nil, fmt.Errorf("%s: want a file with a token in it", path)
	case info.Mode().Perm()&0o077&permBits != 0:
		return "", nil, fmt.Errorf("%s can be read by other users (mode %04o): chmod 600 %s, and make a new token if they may have read it", path, info.Mode().Perm(), path)
	}
	data := make([]byte, info.Size())
	n, err := f.Read(data)
	if err != nil && n == 0 {
		return "", nil, fmt.Errorf("%s: there is no token in it", path)
	}
	secret := strings.TrimSpace(string(data[:n]))
	if !validToken(secret) {
		return "", nil, fmt.Errorf("%s: want %s in it, and nothing else", path, wantToken)
	}
	return secret, info, nil
}

// workFile is the name of the configuration file that is found in the working
// folder, which may be someone else's repository.
const workFile = "signalbox.yaml"

// harmless are the keys in a file of the working folder that count without
// asking the user. All other keys need trust, including new ones. A key belongs
// here only if it runs nothing, grants no access, sends nothing elsewhere,
// removes no protection and deletes nothing that is stored.
var harmless = []string{
	"log.format", "log.level", "log_level", "seed_metrics", "port", "scheduler.enabled", "scheduler.timezone",
	"queue.max_size", "queue.chat_max_size", "queue.wait_timeout", "queue.fleet", "queue.max_attempts", "queue.dispatch_timeout", "queue.age_step",
	"bypass.slots", "bypass.fleet", "landing.rounds",
	"priorities.user", "priorities.schedule", "priorities.agent", "priorities.web", "priorities.cli", "priorities.api",
	"accounts", "budgets.task", "budgets.day", "budgets.users", "budgets.agents", "budgets.accounts", "execution_ttl", "stall_limit", "run_grace", "session_grace", "grace", "on_shutdown",
	"queues", "commands.max_concurrent", "commands.max_waiting", "commands.agent_name", "commands.task_after",
	"agent.name", "agent.kind", "agent.pull", "agent.slots", "agent.isolated_slots", "agent.model", "agent.tiers", "agent.timeout", "agent.check_retries", "agent.limit_wait", "agent.terminal_idle",
	"agent.llm.max_tokens", "agent.llm.max_turns", "agent.llm.max_parallel_tool_calls", "agent.llm.min_parallel_tool_calls", "agent.llm.over_limit",
}

// NamedFile is File, or "" if it was found in the working folder: another
// program that needs this configuration finds it there too, by the same
// rules. A file that is named explicitly is not asked about.
func (c *Config) NamedFile() string {
	if c.sources.found {
		return ""
	}
	return c.File
}

// Untrusted is a file of the working folder with keys that count only after
// the user has trusted it.
type Untrusted struct {
	Path  string   // absolute
	Keys  []string // keys that need trust
	Hides string   // the user's own file, which this file replaces; "": there is none
	mark  string   // records that the file is trusted
}

// Does describes the effects of the file that need trust, for people.
func (u *Untrusted) Does() string {
	var does []string
	if len(u.Keys) > 0 {
		does = append(does, "sets "+strings.Join(u.Keys, ", "))
	}
	if u.Hides != "" {
		does = append(does, "counts in place of "+u.Hides)
	}
	return strings.Join(does, " and ")
}

// confirmWorkFile asks about guarded keys, unless the file is trusted.
func confirmWorkFile(path string, data []byte, root node, src Sources) error {
	u, err := untrusted(path, data, root, Home(src.Env))
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
	return fmt.Errorf("it %s, which a file of the working folder may only once you have looked at it: signalbox trust %s, or name it with --config",
		u.Does(), u.Path)
}

// ownFile refuses a file, or a link to one, that others can write or have
// created.
func ownFile(path string) error {
	link, err := os.Lstat(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // for a folder, the reader reports the error
		return errors.New("want a file, which it is not")
	}
	if ours(path, link) && Own(path, info) {
		return nil
	}
	return fmt.Errorf("it is not read: another user owns it or can write to it (mode %04o); chmod go-w it if it is yours, or name the file to use with --config", info.Mode().Perm())
}

// untrusted returns what to ask the user about a file with this content; nil
// if there is nothing to ask, or the user has answered.
func untrusted(path string, data []byte, root node, home string) (*Untrusted, error) {
	keys, hides := guardedKeys(root), ownConfig(home)
	if _, err := os.Lstat(hides); err != nil || filepath.Base(path) == repositoryFile {
		hides = ""
	}
	if len(keys) == 0 && hides == "" {
		return nil, nil
	}
	if home == "" {
		return nil, errors.New("there is no folder in which to record the trust: neither HOME nor " + HomeEnv + " is set")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) == repositoryFile { // the agent resolves links in the folder
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, repositoryFile)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n", len(path), path)
	sum.Write(data)
	u := &Untrusted{Path: path, Keys: keys, Hides: hides, mark: filepath.Join(home, "trusted", hex.EncodeToString(sum.Sum(nil)))}
	if _, err := os.Lstat(u.mark); err == nil {
		return nil, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return u, nil
}

// trust records that the file is trusted, with this content at this path.
func (u *Untrusted) trust() error {
	if err := ownFolder(filepath.Dir(u.mark)); err != nil {
		return err
	}
	return os.WriteFile(u.mark, []byte(u.Path+"\n"), 0o600)
}

// guardedKeys are the keys of a file that need trust, in the file's order.
func guardedKeys(root node) []string {
	var out []string
	all := settings(new(Config))
	var walk func(n node, prefix string)
	walk = func(n node, prefix string) {
		if n == nil || n.Form != conffile.Section {
			return
		}
		for _, pair := range n.Pairs {
			key := prefix + pair.Key
			switch {
			case slices.Contains(harmless, key) || pair.Value.Form == conffile.Nothing:
			case all.section(key) && all.find(key) == nil:
				walk(pair.Value, key+".")
			default:
				out = append(out, key)
			}
		}
	}
	walk(root, "")
	return out
}

// Trust records that a file of a working folder is trusted with its present
// content, and returns what it does; "" if there was nothing to trust.
func Trust(path string, env func(string) (string, bool)) (does string, err error) {
	if err := ownFile(path); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	data, err := conffile.Bytes(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	root, err := conffile.Parse(data, conffile.YAML)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	u, err := untrusted(path, data, root, Home(env))
	if err != nil || u == nil {
		return "", err
	}
	return u.Does(), u.trust()
}
