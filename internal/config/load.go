package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Sources say where a configuration comes from.
type Sources struct {
	// File is the file that --config names; "": signalbox.yaml in Dir, else
	// config.yaml in Home, where there is one.
	File string
	// NoSearch leaves out the search: no File, no file.
	NoSearch bool
	// NoWorkFile leaves out the signalbox.yaml of Dir.
	NoWorkFile bool
	// Ask asks the user whether such a file, which he did not name, is to be
	// trusted; nil: there is nobody to ask, and it is not.
	Ask func(Untrusted) (bool, error)
	// NoTools leaves out the tools, for those who do not serve any: their
	// variables need not be set, nor their files be there.
	NoTools bool
	// Scheduler says that it is for a scheduler that stands alone, which has
	// jobs and no tools, and whose file may be the seed work-queue's
	// scheduler.yaml. Without it NoTools leaves out the jobs too.
	Scheduler bool
	Dir       string                      // the working folder; default: the process's
	Env       func(string) (string, bool) // default os.LookupEnv
	Flags     []Flag                      // those that were given, the last of a key wins
	// found says that File is the signalbox.yaml of Dir, which nobody named: it is
	// read again.
	found bool
}

// Flag is a flag that sets a key.
type Flag struct {
	Name   string   // as it is typed, such as --addr
	Key    string   // of the file, such as agent.slots
	Values []string // one, but for keys that are lists
}

// Load returns the configuration: defaults, overridden by the file, by the
// environment, by the flags. An error is Problems, all that were found.
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
	if len(found) == 0 && c.confirm != nil { // last: a file that is wrong is not asked about
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
	c.read, _ = os.Stat(path) // before: what changes while it is read is found by FollowJobs
	f.read(path)
	c.File = path
	if found {
		c.confirm = func() error { return confirmWorkFile(path, f.data, f.root, src) }
	}
	return toolconf.Own{Name: name, Base: f.base, Pairs: f.tools}, f.found
}

// loadTools reads the tools that the file has and those of the files that it,
// a variable or flags name.
func loadTools(c *Config, src Sources, own toolconf.Own) Problems {
	s := toolconf.Source{Own: own, Env: src.Env, Home: userHome(src.Env), Dir: src.Dir}
	for _, path := range c.ToolFiles {
		s.Files = append(s.Files, toolconf.File{Name: near(src.Dir, path), Path: path, From: c.Origin("tools")})
	}
	tools, found := toolconf.Load(s)
	c.Tools = tools
	return found
}

// near is a path as a person in dir would write it.
func near(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// findFile returns the file to read, as the person knows it and as a path;
// "" where there is none. A file that is there but cannot be read is found:
// reading it will say so.
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

// ownConfig is the user's own file, which counts in each folder without one.
func ownConfig(home string) string { return filepath.Join(home, "config.yaml") }

// loadEnv applies the variables. An empty one counts as not set; of several
// names for a key the first that is set wins.
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

// redisURL is the seeds' name for the store. Programs beside this one have it,
// too: so it counts only where no store is given.
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

// loadTokenFile reads the token from the file that is named. Of a token and a
// file the one that comes from nearer counts: flag, variable, file.
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

// nearness orders the places that a value can come from.
func nearness(origin string) int {
	switch {
	case strings.HasPrefix(origin, "--"):
		return 2
	case strings.Contains(origin, ":"):
		return 0
	}
	return 1
}

// words are the parts of a list with commas.
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
			panic("config: flag " + flag.Name + " sets " + flag.Key + ", which is no key")
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

// untyped makes a value of a text from the environment or a flag.
func (src Sources) untyped(text string) value {
	return value{Value: conffile.Value{Form: conffile.Text, Text: text, Untyped: true}, base: src.Dir, home: userHome(src.Env)}
}

// check looks at what only several values together can tell.
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
		found = append(found, Problem{Where: at, Key: "port", Text: "it is the port of a scheduler that stands alone, in a file for signalbox scheduler: where the director listens is addr, and the scheduler scheduler.addr"})
	}
	return found
}

// fromFile is where a key stands in the file, or "".
func (c *Config) fromFile(key string) string {
	if from := c.origins[key]; strings.Contains(from, ":") {
		return from
	}
	return "" // a variable or flag, which is stronger and no contradiction
}

// HomeEnv names the environment variable that puts the home folder of
// Signalbox elsewhere.
const HomeEnv = "SIGNALBOX_HOME"

// Home returns the home folder of Signalbox: $SIGNALBOX_HOME, else
// .signalbox in the user's home; "" where neither is known. env is a lookup
// such as os.LookupEnv.
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

// DirectorFile is where a running director says how to reach it
// (api.DirectorFile), in a home folder of Signalbox.
func DirectorFile(home string) string { return filepath.Join(home, "director.json") }

// FurtherDirectorFile is the same for the director at a URL, so that several
// can run with one home folder.
func FurtherDirectorFile(home, url string) string {
	_, addr, _ := strings.Cut(strings.ToLower(strings.TrimRight(url, "/")), "://")
	return filepath.Join(home, "directors", strings.NewReplacer(":", "_", "/", "_").Replace(addr)+".json")
}

// TokenFile holds the token of the owner of this home folder: the static token
// of the directors that run with it, unless another one is given.
func TokenFile(home string) string { return filepath.Join(home, "token") }

// SchedulerFile is where a running scheduler that stands alone says how to
// reach it, as a director does in DirectorFile.
func SchedulerFile(home string) string { return filepath.Join(home, "scheduler.json") }

// SchedulerTokenFile is the same for a scheduler that stands alone.
func SchedulerTokenFile(home string) string { return filepath.Join(home, "scheduler-token") }
