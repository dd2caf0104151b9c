package signalbox

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// nameForm does not check the length: {0,127} instead of * would take a hundred
// times as long to compile, at the start of every command. The same applies to
// the other name patterns.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ValidName reports whether name can name an agent, a kind or a job: 1 to 64
// letters, digits, dots, underscores or hyphens, the first a letter or digit.
func ValidName(name string) bool {
	return len(name) <= 64 && nameForm.MatchString(name) && !strings.Contains(name, "..")
}

// ValidSessionID reports whether id can be a session id in the seed's form:
// 1 to 128 characters, without "..".
func ValidSessionID(id string) bool {
	return len(id) <= 128 && nameForm.MatchString(id) && !strings.Contains(id, "..")
}

// previewRunes is the length of a prompt preview, in characters.
const previewRunes = 80

// Preview returns the first line of a prompt, cut to 80 characters. Control and formatting
// characters are replaced, because it is shown in terminals and logs.
func Preview(prompt string) string {
	line, _, more := strings.Cut(strings.TrimSpace(clip(prompt, 4*previewRunes*4)), "\n")
	line = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, line)
	line = strings.TrimSpace(line)
	n := 0
	for at := range line {
		if n++; n > previewRunes {
			return strings.TrimSpace(line[:at]) + "..."
		}
	}
	if more {
		return line + "..."
	}
	return line
}

// unprintable reports whether r can control a terminal, break the line or change
// the text direction. Joiners are allowed, because emoji and some scripts need
// them.
func unprintable(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f // fast path for ASCII: the tables are slow
	}
	const nonJoiner, joiner = 0x200c, 0x200d
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Zl, unicode.Zp) ||
		(unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner)
}

// clip cuts s to at most n bytes, at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// IDPrefix is the prefix of every task id.
const IDPrefix = "queue-"

// idEncoding is Crockford's alphabet, which keeps the order of the bytes and
// omits i, l, o and u, which people misread.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

var idForm = regexp.MustCompile(`^queue-[0-9a-hjkmnp-tv-z]{26}$`)

// NewID returns a task id: "queue-" and 26 characters that encode the time in ms
// (48 bits, so that ids sort by time) and 80 bits read from random.
func NewID(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	return IDPrefix + idEncoding.EncodeToString(b[:]), nil
}

// NewSessionID returns a session id: a version 4 UUID, the form that coding CLIs expect.
func NewSessionID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

// ValidID reports whether id has the form of a task id.
func ValidID(id string) bool { return idForm.MatchString(id) }

// MatchTool reports whether a pattern matches the name of a tool. * matches any text,
// including none, and may stand anywhere; a pattern without * matches only itself.
func MatchTool(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, last)
}

// AnswerCut is the last text of a tool's answer if the tool's output was truncated. The
// metadata then has "truncated": true.
const AnswerCut = "[The answer was cut: the tool printed more than the first 1 MiB, which is all that is kept.]"

// EnvBy says who set a task's environment and checks.
type EnvBy string

// The values of EnvBy. Callers who are not admins may set only the names that the
// configuration of the agent allows.
const (
	EnvByAdmin  EnvBy = "admin"  // the owner of the director, or an admin
	EnvByCaller EnvBy = "caller" // anyone else
)

var envPattern = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_*]*$`)

// ValidEnvPattern reports whether pattern is valid for names of variables: a name in which *
// matches any characters, such as CALENDAR_*.
func ValidEnvPattern(pattern string) bool {
	return len(pattern) <= 128 && envPattern.MatchString(pattern)
}

// EnvNotAllowed returns the first name of an environment, in alphabetical order, that no
// pattern matches; "" if all match.
func EnvNotAllowed(patterns []string, env map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return ok && err == nil && ValidEnvPattern(p)
		}) {
			return name
		}
	}
	return ""
}

// MayBringEnv refuses an environment with names that the agent does not allow. An admin may set
// any name.
func (p Principal) MayBringEnv(agent string, allowed []string, env map[string]string) error {
	name := EnvNotAllowed(allowed, env)
	if name == "" || p.Has(ScopeAdmin) {
		return nil
	}
	return Invalid("env", "agent %s does not take env.%s from %s: who runs the agent allows names with agent.task_env, and an admin may set any", agent, Clip(name), p.String())
}

// The kinds of queues from which tasks are imported under new ids.
const (
	ImportWorkQueue      = "work-queue"
	ImportExecutionQueue = "execution-queue"
	ImportAsyncTaskQueue = "async-task-queue"
)

// Imports lists them in the order in which an old id is looked up.
func Imports() []string { return []string{ImportWorkQueue, ImportExecutionQueue, ImportAsyncTaskQueue} }

// ImportKey returns the idempotency key of a task that had the id old in a queue of that kind.
// With it, a repeated import stores nothing twice, and the task is found by its old id.
func ImportKey(kind, old string) string { return ImportPrefix + kind + " " + old }

// ImportPrefix is the prefix of the idempotency keys of imported tasks.
const ImportPrefix = "import "

// ValidPathPattern reports whether s is a pattern for paths below a folder, with slashes, as
// defined by path.Match: * matches any characters except slashes.
func ValidPathPattern(s string) bool {
	_, err := path.Match(s, "")
	clean := path.Clean(s)
	return err == nil && s != "" && clean != "." && fs.ValidPath(clean)
}
