package agentd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// place is where a run happens.
type place struct {
	home string // HOME of the program
	dir  string // its working directory
}

// place finds the folders of a run. Slot 0 uses the configured ones; every
// further slot and every isolated run has its own, so that no two runs share
// a CLI's state. A conversation goes on where it was held.
func (r *run) place() place {
	d, rec := r.d, r.record()
	p := place{home: d.cfg.Home, dir: d.cfg.WorkDir}
	own := ""
	switch {
	case rec.Isolated:
		own = d.disk.runDir(rec.TaskID)
	case rec.Slot > 0:
		own = filepath.Join(d.cfg.DataDir, "slots", strconv.Itoa(rec.Slot))
	}
	if own != "" {
		p = place{home: filepath.Join(own, "home"), dir: filepath.Join(own, "work")}
	}
	if !rec.Isolated {
		if s, ok := d.disk.loadSession(rec.SessionID); ok {
			p.home = s.Home
			if _, err := realDir(s.Dir); err == nil {
				p.dir = s.Dir
			}
		}
	}
	if r.job.dir != "" {
		p.dir = r.job.dir
	}
	return p
}

// fromWorkDir finds a program that is given from the agent's working directory,
// such as ./job.sh, also for a run that has a directory of its own.
func (r *run) fromWorkDir(argv []string, dir string) []string {
	name := argv[0]
	if filepath.IsAbs(name) || !strings.ContainsRune(name, filepath.Separator) {
		return argv
	}
	if r.job.dir != "" {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil { // the project has one of that name
			return argv
		}
	}
	return append([]string{filepath.Join(r.d.cfg.WorkDir, name)}, argv[1:]...)
}

// prepare makes the folders of a place and returns those to lock.
func (r *run) prepare(p place) ([]string, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	locks := []string{p.dir}
	if p.home != r.d.cfg.Home {
		if err := os.MkdirAll(p.home, 0o700); err != nil {
			return nil, err
		}
		r.linkLogins(p.home)
	}
	if state := r.d.runner.StateDir(p.home); state != "" {
		if err := os.MkdirAll(state, 0o700); err != nil {
			return nil, err
		}
		locks = append(locks, state)
	}
	return locks, nil
}

// linkLogins lets a CLI with a home of its own use the login of the
// configured home. Links, not copies: a refreshed login stays one login.
func (r *run) linkLogins(home string) {
	for _, name := range r.d.runner.LoginFiles() {
		from, to := filepath.Join(r.d.cfg.Home, name), filepath.Join(home, name)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			continue // the CLI will say that it is not logged in
		}
		_ = os.Symlink(from, to) // it may be there from the last run
	}
}

// conversation tells how the CLI knows the run's conversation, and whether it
// exists already.
func (r *run) conversation(home string) (cli string, resume bool) {
	rec := r.record()
	if rec.Isolated {
		return "", false
	}
	if s, ok := r.d.disk.loadSession(rec.SessionID); ok && r.d.runner.SessionExists(s.Home, s.CLI) {
		return s.CLI, true
	}
	if r.d.runner.SessionExists(home, rec.SessionID) {
		return rec.SessionID, true
	}
	return r.d.runner.NewSession(rec.SessionID), false
}
