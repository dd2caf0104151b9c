package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/atomicfile"
)

// Store keeps conversations, one file each: a line with the session and the
// number of messages, and a line for each message. Files are private to the
// owner and are replaced atomically. A session must not be saved concurrently.
type Store struct{ dir string }

const (
	storeFormat = "signalbox-conversation/1"
	storeSuffix = ".jsonl"
	maxStored   = 256 << 20 // bytes of a conversation, which is held in memory: far beyond what a model accepts
)

type storeHead struct {
	Format   string    `json:"format"`
	Session  string    `json:"session"`
	Messages int       `json:"messages"`
	Saved    time.Time `json:"saved"`
}

// CorruptError says that a conversation could not be read, and where its file
// was moved. The session then has no conversation.
type CorruptError struct {
	Session string
	Path    string // where the file is now
	Err     error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the conversation of session %q is damaged (%v); its file was set aside as %s, and the session begins anew", e.Session, e.Err, e.Path)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// OpenStore opens the folder, creating it if needed.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of conversations: %w", err)
	}
	return &Store{dir: dir}, nil
}

var plainSession = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// path is the file of a session. A name that a file system might confuse with
// another one, or that might leave the folder, is hashed.
func (s *Store) path(session string) string {
	name := session
	if len(session) > 100 || !plainSession.MatchString(session) || strings.Contains(session, "..") {
		sum := sha256.Sum256([]byte(session))
		name = "~" + hex.EncodeToString(sum[:16])
	}
	return filepath.Join(s.dir, name+storeSuffix)
}

// Exists reports whether the session has a conversation.
func (s *Store) Exists(session string) bool {
	_, err := os.Stat(s.path(session))
	return err == nil
}

func parseHead(line []byte) (storeHead, error) {
	var h storeHead
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("line 1: %w", err)
	}
	if h.Format != storeFormat {
		return h, fmt.Errorf("line 1: the format is %q, expected %q", h.Format, storeFormat)
	}
	return h, nil
}

// Load returns a session's conversation, nil if there is none. A damaged file
// is set aside, and the error is a *CorruptError.
func (s *Store) Load(session string) ([]Message, error) {
	path := s.path(session)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the conversation of session %q: %w", session, err)
	}
	var messages []Message
	switch {
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file") // reading a pipe would block for ever
	case info.Size() > maxStored:
		err = fmt.Errorf("it has %d bytes, %d at most", info.Size(), maxStored)
	default:
		b, failed := os.ReadFile(path)
		if failed != nil {
			return nil, fmt.Errorf("the conversation of session %q: %w", session, failed)
		}
		messages, err = parse(b, session)
	}
	if err == nil {
		return messages, nil
	}
	aside := fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102T150405.000000000"))
	if moved := os.Rename(path, aside); moved != nil {
		return nil, fmt.Errorf("the conversation of session %q is damaged (%w) and could not be set aside: %w", session, err, moved)
	}
	return nil, &CorruptError{Session: session, Path: aside, Err: err}
}

func parse(b []byte, session string) ([]Message, error) {
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	h, err := parseHead(lines[0])
	if err != nil {
		return nil, err
	}
	if h.Session != session {
		return nil, fmt.Errorf("line 1: it is of session %q", h.Session)
	}
	if h.Messages != len(lines)-1 {
		return nil, fmt.Errorf("it has %d messages, expected %d", len(lines)-1, h.Messages)
	}
	messages := make([]Message, 0, h.Messages)
	for i, line := range lines[1:] {
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// Save replaces a session's conversation. It is durable when Save returns.
func (s *Store) Save(session string, messages []Message) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(storeHead{Format: storeFormat, Session: session, Messages: len(messages), Saved: time.Now().UTC()})
	for _, m := range messages {
		err = errors.Join(err, e.Encode(m))
	}
	if err == nil && b.Len() > maxStored {
		err = fmt.Errorf("it has %d bytes, %d at most: begin a new session", b.Len(), maxStored)
	}
	if err == nil {
		err = replace(s.path(session), b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("the conversation of session %q could not be saved: %w", session, err)
	}
	return nil
}

// Remove deletes a session's conversation, if it has one.
func (s *Store) Remove(session string) error {
	if err := os.Remove(s.path(session)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// replace writes a file so that the old or the new content exists at any
// time. The next call overwrites what a crash leaves behind.
func replace(path string, b []byte) error {
	draft := path + ".new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		os.Remove(draft)
		return err
	}
	return atomicfile.SyncFolder(filepath.Dir(path))
}
