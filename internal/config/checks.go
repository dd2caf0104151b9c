package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// decodeChecks decodes a list such as [{name: test, run: go test ./..., timeout: 10m}].
func decodeChecks(to *[]signalbox.Check) func(*file, string, conffile.Pair) {
	return func(f *file, key string, pair conffile.Pair) {
		switch pair.Value.Form {
		case conffile.Nothing:
			return
		case conffile.List:
		default:
			f.add(pair.Value.Line, key, "want a list of checks, such as [{name: test, run: go test ./...}], got "+f.scalar(pair.Value).Shown())
			return
		}
		var list []signalbox.Check
		for i, item := range pair.Value.Items {
			var c signalbox.Check
			if f.entry(item, fmt.Sprintf("%s[%d]", key, i), checkSettings(&c)) {
				list = append(list, c)
			}
		}
		if err := (signalbox.Checking{Checks: list}).Validate(); err != nil {
			f.add(pair.Line, key, err.Error())
			return
		}
		*to = list
		f.seen[key] = f.where(pair.Line)
	}
}

// checkSettings are the keys of one check.
func checkSettings(c *signalbox.Check) schema {
	const most = signalbox.MaxCheckTimeout * time.Second
	return schema{
		text("name", wantName, &c.Name, signalbox.ValidName),
		{key: "run", nested: func(f *file, key string, pair conffile.Pair) { // the shell expands its variables
			if pair.Value.Form != conffile.Text {
				f.add(pair.Value.Line, key, "want a shell command, got "+f.scalar(pair.Value).Shown())
				return
			}
			c.Run = pair.Value.Text
		}},
		typed("timeout", conffile.WantDuration(time.Second, most)+", in whole seconds", &c.TimeoutSeconds, func(v value) (int, bool) {
			d, ok := v.duration(time.Second, most)
			return int(d / time.Second), ok && d%time.Second == 0
		}),
	}
}

// repositoryFile is the file in the top folder of a repository that configures the checks
// of work on it.
const repositoryFile = ".signalbox.yaml"

// RepositoryChecks reads the checks of the repository with that top folder; nil if it has no
// file .signalbox.yaml, or one without checks.
//
// Errors: an invalid file; a file that another user may have written; a file that the user has
// not trusted in its present form (the error says how).
func RepositoryChecks(top string, env func(string) (string, bool)) ([]signalbox.Check, error) {
	path := filepath.Join(top, repositoryFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	list, u, err := readRepositoryFile(path, env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if u != nil && len(list) > 0 {
		return nil, fmt.Errorf("%s %s, which are commands and count only once you have looked at them: signalbox trust %s", path, u.Does(), path)
	}
	return list, nil
}

func readRepositoryFile(path string, env func(string) (string, bool)) ([]signalbox.Check, *Untrusted, error) {
	if err := ownFile(path); err != nil {
		return nil, nil, err
	}
	var list []signalbox.Check
	f := file{name: repositoryFile, env: env, seen: map[string]string{}}
	f.readAs(path, schema{{key: "checks", nested: decodeChecks(&list)}})
	if len(f.found) > 0 {
		return nil, nil, f.found
	}
	u, err := untrusted(path, f.data, f.root, Home(env))
	return list, u, err
}
