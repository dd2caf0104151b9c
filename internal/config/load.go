package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Sources say where a configuration is read from.
type Sources struct {
	// File is the file named with --config; "": signalbox.yaml in Dir, else
	// config.yaml in Home, if it exists.
	File string
	// NoSearch skips the search: without File, no file is read.
	NoSearch bool
	// NoWorkFile ignores the signalbox.yaml of Dir.
	NoWorkFile bool
	// Ask asks the user whether to trust such a file, which was not named
	// explicitly; nil: the user cannot be asked, and the file is not trusted.
	Ask func(Untrusted) (bool, error)
	// NoTools ignores the tools, for programs that serve none: their variables
	// need not be set, nor their files exist.
	NoTools bool
	// Scheduler is set for a standalone scheduler, which has jobs and no tools,
	// and whose file may be the seed work-queue's scheduler.yaml. If it is not
	// set, NoTools ignores the jobs as well.
	Scheduler bool
	Dir       string                      // the working folder; default: the process's
	Env       func(string) (string, bool) // default os.LookupEnv
	Flags     []Flag                      // given flags; of several for the same key the last one counts
	// found says that File is the signalbox.yaml of Dir, which was found by the
	// search: it is being read again.
	found bool
}

// Flag is a flag that sets a key.
type Flag struct {
	Name   string   // as typed, such as --addr
	Key    string   // in the file, such as agent.slots
	Values []string // one value, except for lists
}

// Load returns the configuration: defaults, overridden by the file, then by
// the environment, then by flags. An error is Problems with all mistakes.
func Load(src Sources) (Config, error) {
	if src.Env == nil {
		src.Env = os.LookupEnv
	}
	if src.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return Config{}, Problems{{Where: "working folder", Text: err.Error()}}
		}
		src.Dir = dir
	}
	home := Home(src.Env)
	c := Default(home)
	own, found := loadFile(&c, src, home)
	found = append(found, loadEnv(&c, src)...)
	found = append(found, loadFlags(&c, src)...)
	if !src.NoTools && !src.Scheduler {
		found = append(found, loadRedisURL(&c, src)...)
	}
	if !src.NoTools && !src.Scheduler {
		found = append(found, loadTools(&c, src, own)...)
	}
	if len(found) == 0 {
		found = append(loadTokenFile(&c), check(&c, src)...)
	}
	if len(found) == 0 && c.confirm != nil { // last: the user is not asked about an invalid file
		if err := c.confirm(); err != nil {
			found = Problems{{Where: workFile, Text: err.Error()}}
		}
	}
	if len(found) > 0 {
		return Config{}, found
	}
	src.found = c.confirm != nil
	c.confirm = nil
	c.sources = src
	return c, nil
}

func loadFile(c *Config, src Sources, home string) (toolconf.Own, Problems) {
	name, path := findFile(src, home)
	if path == "" {
		return toolconf.Own{}, nil
	}
	f := file{
		name: name, c: c, env: src.Env, base: filepath.Dir(path), home: userHome(src.Env), seen: c.origins, noJobs: src.NoTools && !src.Scheduler,
	}
	found := src.found || src.File == "" && name == workFile
	if found {
		if err := ownFile(path); err != nil {
			return toolconf.Own{}, Problems{{Where: name, Text: err.Error()}}
		}
	}
	c.read, _ = os.Stat(path) // before reading, so that FollowJobs notices a change during the read
	f.read(path)
	c.File = path
	if found {
		c.confirm = func() error { return confirmWorkFile(path, f.data, f.root, src) }
	}
	return toolconf.Own{Name: name, Base: f.base, Pairs: f.tools}, f.found
}

// loadTools reads the tools in the file and those in files that it, a
// variable or flags name.
func loadTools(c *Config, src Sources, own toolconf.Own) Problems {
	s := toolconf.Source{Own: own, Env: src.Env, Home: userHome(src.Env), Dir: src.Dir}
	for _, path := range c.ToolFiles {
		s.Files = append(s.Files, toolconf.File{Name: near(src.Dir, path), Path: path, From: c.Origin("tools")})
	}
	tools, found := toolconf.Load(s)
	c.Tools = tools
	return found
}

// near is a path as a user in dir would write it.
func near(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// findFile returns the file to read, as the user knows it and as a path; ""
// if there is none. A file that exists but cannot be read counts as found:
// reading it reports the error.
func findFile(src Sources, home string) (name, path string) {
	if src.File != "" {
		if filepath.IsAbs(src.File) {
			return src.File, src.File
		}
		return src.File, filepath.Join(src.Dir, src.File)
	}
	if src.NoSearch {
		return "", ""
	}
	here := filepath.Join(src.Dir, workFile)
	if _, err := os.Lstat(here); err == nil && !src.NoWorkFile {
		return workFile, here
	}
	if home == "" {
		return "", ""
	}
	there := ownConfig(home)
	if _, err := os.Lstat(there); err == nil {
		return there, there
	}
	return "", ""
}

// ownConfig is the user's own file, used in each folder that has none.
func ownConfig(home string) string { return filepath.Join(home, "config.yaml") }

// loadEnv applies the variables. An empty variable counts as not set; if a
// key has several variables, the first that is set counts.
func loadEnv(c *Config, src Sources) Problems {
	var found Problems
	for _, x := range settings(c) {
		for _, name := range x.env {
			text, ok := src.Env(name)
			if !ok || text == "" {
				continue
			}
			v := src.untyped(text)
			if x.commas {
				v.Form, v.list = conffile.List, words(text)
			}
			if bad := x.apply(v); bad != "" {
				found = append(found, Problem{Where: name, Key: x.key, Text: bad})
			} else {
				c.origins[x.key] = name
			}
			break
		}
	}
	return found
}

// redisURL is the seeds' variable for the store. Other programs use it too, so
// it counts only if no store is configured.
const redisURL = "REDIS_URL"

func loadRedisURL(c *Config, src Sources) Problems {
	text, ok := src.Env(redisURL)
	if _, given := c.origins["store"]; given || !ok || text == "" {
		return nil
	}
	x := settings(c).find("store")
	if bad := x.apply(src.untyped(text)); bad != "" {
		return Problems{{Where: redisURL, Key: x.key, Text: bad + "; where it is meant for another program, give --store sqlite:"}}
	}
	c.origins[x.key] = redisURL
	return nil
}

// loadTokenFile reads the token from the configured file. If both a token and
// a file are set, the one with the higher precedence counts: flag, variable,
// file.
func loadTokenFile(c *Config) Problems {
	if c.TokenFile == "" {
		return nil
	}
	if from, ok := c.origins["token"]; ok {
		file := c.origins["token_file"]
		switch token := nearness(from) - nearness(file); {
		case token > 0:
			c.TokenFile = ""
			return nil
		case token == 0:
			return Problems{{Where: file, Key: "token_file", Text: "the token stands at " + from + ": give one of them"}}
		}
	}
	token, err := ReadSecret(c.TokenFile)
	if err != nil {
		return Problems{{Where: c.Origin("token_file"), Key: "token_file", Text: err.Error()}}
	}
	c.Token = token
	c.origins["token"] = c.origins["token_file"]
	return nil
}

// nearness is the precedence of the origin of a value.
func nearness(origin string) int {
	switch {
	case strings.HasPrefix(origin, "--"):
		return 2
	case strings.Contains(origin, ":"):
		return 0
	}
	return 1
}

// words splits a comma-separated list.
func words(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func loadFlags(c *Config, src Sources) Problems {
	var found Problems
	all := settings(c)
	for _, flag := range src.Flags {
		x := all.find(flag.Key)
		if x == nil || x.set == nil && x.tell == nil {
			panic("config: flag " + flag.Name + " sets " + flag.Key + ", which is not a key")
		}
		v := src.untyped("")
		if len(flag.Values) > 0 {
			v.Text = flag.Values[len(flag.Values)-1]
		}
		if len(flag.Values) > 1 {
			v.Form, v.list = conffile.List, flag.Values
		}
		if bad := x.apply(v); bad != "" {
			found = append(found, Problem{Where: flag.Name, Text: bad})
		} else {
			c.origins[x.key] = flag.Name
		}
	}
	return found
}

// untyped makes a value from a text in the environment or a flag.
func (src Sources) untyped(text string) value {
	return value{Value: conffile.Value{Form: conffile.Text, Text: text, Untyped: true}, base: src.Dir, home: userHome(src.Env)}
}

// check validates combinations of values.
func check(c *Config, src Sources) Problems {
	var found Problems
	if c.Data == "" {
		found = append(found, Problem{Where: "data", Text: "want a folder: neither HOME nor " + HomeEnv + " is set"})
	}
	if c.Agent.Kind == "command" && len(c.Agent.Command) == 0 {
		found = append(found, Problem{Where: c.Origin("agent.kind"), Key: "agent.kind", Text: "an agent of kind command needs agent.command, the program and its arguments"})
	}
	if l := &c.Agent.LLM; l.MinParallelToolCalls > l.MaxParallelToolCalls {
		found = append(found, Problem{Where: c.Origin("agent.llm.min_parallel_tool_calls"), Key: "agent.llm.min_parallel_tool_calls",
			Text: fmt.Sprintf("%d is more than agent.llm.max_parallel_tool_calls, which is %d", l.MinParallelToolCalls, l.MaxParallelToolCalls)})
	}
	for _, same := range [][2]string{{"hosts", "public_hosts"}, {"scheduler.addr", "port"}, {"log.level", "log_level"}, {"director", "director_url"}} {
		if one, two := c.fromFile(same[0]), c.fromFile(same[1]); one != "" && two != "" {
			found = append(found, Problem{Where: two, Key: same[1], Text: "it is the same as " + same[0] + ", which stands at " + one + ": give one of them"})
		}
	}
	if at := c.fromFile("port"); at != "" && !src.Scheduler {
		found = append(found, Problem{Where: at, Key: "port", Text: "it is the port of a standalone scheduler, in a file for signalbox scheduler: where the director listens is addr, and the scheduler scheduler.addr"})
	}
	return found
}

// fromFile is the place of a key in the file, or "".
func (c *Config) fromFile(key string) string {
	if from := c.origins[key]; strings.Contains(from, ":") {
		return from
	}
	return "" // a variable or flag overrides it and is not a contradiction
}

// HomeEnv is the environment variable that sets the home folder of Signalbox.
const HomeEnv = "SIGNALBOX_HOME"

// Home returns the home folder of Signalbox: $SIGNALBOX_HOME, else .signalbox
// in the user's home; "" if neither is known. env looks up a variable, like
// os.LookupEnv.
func Home(env func(string) (string, bool)) string {
	if home, ok := env(HomeEnv); ok && home != "" {
		return home
	}
	if home := userHome(env); home != "" {
		return filepath.Join(home, ".signalbox")
	}
	return ""
}

func userHome(env func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := env(name); ok && home != "" {
			return home
		}
	}
	return ""
}

// DirectorFile is the file in a home folder of Signalbox in which a running
// director says how to reach it (api.DirectorFile).
func DirectorFile(home string) string { return filepath.Join(home, "director.json") }

// FurtherDirectorFile is the same for the director at a URL, so that several
// directors can run with one home folder.
func FurtherDirectorFile(home, url string) string {
	_, addr, _ := strings.Cut(strings.ToLower(strings.TrimRight(url, "/")), "://")
	return filepath.Join(home, "directors", strings.NewReplacer(":", "_", "/", "_").Replace(addr)+".json")
}

// TokenFile has the token of the owner of this home folder: the static token
// of the directors that use it, unless another one is configured.
func TokenFile(home string) string { return filepath.Join(home, "token") }

// SchedulerFile is the file in which a running standalone scheduler says how
// to reach it, like DirectorFile.
func SchedulerFile(home string) string { return filepath.Join(home, "scheduler.json") }

// SchedulerTokenFile is TokenFile for a standalone scheduler.
func SchedulerTokenFile(home string) string { return filepath.Join(home, "scheduler-token") }
