package toolconf

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// longestRun bounds the timeout of a command: an async one may take days.
const longestRun = 7 * 24 * time.Hour

// markVariable is how all that a run starts is found. It is set for each run.
const markVariable = "SIGNALBOX_RUN"

var commandName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// takenNames cannot be those of command tools, which have nothing in front:
// routes stand in the place of the first two, and the queue's own tools have the
// others.
var takenNames = []string{
	"tasks", "queues",
	"submit_task", "task_status", "task_output", "cancel_task", "list_agents", "queue_status", "chat_with_agent",
}

var (
	propertyName = rule{want: "the name of a property of the input", ok: func(s string) bool { return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, control) }}
	folderName   = rule{want: "a folder", secret: true, ok: notEmpty.ok}
)

// commandTool reads one command tool of the section commandTools.
func (r *reader) commandTool(name string, s *section) {
	before := len(r.merge.problems)
	r.filled = nil
	t := CommandTool{Name: name, Where: r.where(s.line)}
	s.commandName(name, s.line)
	if _, given := s.given("command"); !given {
		s.problem(s.line, s.key, "it has no command: want the program to run")
	}
	t.Command, t.Args = s.command()
	t.Command = s.programPath(t.Command)
	t.Cwd = s.folder(r.base, "cwd")
	s.sayUnit("timeoutMs")
	t.Timeout, _ = s.duration(0, longestRun, "timeout", "timeoutMs")
	s.commandRest(&t)
	s.finish(foreignCommand)
	if len(r.merge.problems) == before {
		s.addCommand(t)
	}
}

// has reports whether there is something under one of the keys.
func (s *section) has(names ...string) bool {
	_, ok := s.given(names...)
	return ok
}

// folder reads a folder, relative to that of the file.
func (s *section) folder(otherwise string, names ...string) string {
	if text := s.text(folderName, names...); text != "" {
		return s.path(text)
	}
	return otherwise
}

// commandName checks a name.
func (s *section) commandName(name string, line int) {
	switch {
	case !commandName.MatchString(name):
		s.problem(line, s.key, "want 1 to 128 letters, digits, dots, underscores or hyphens as its name")
	case slices.Contains(takenNames, name):
		s.problem(line, s.key, "want another name: "+name+" is one of Signalbox's own")
	case strings.HasPrefix(name, reserved+"__"):
		s.problem(line, s.key, "want another name: those of the REST tools begin with "+reserved+"__")
	}
}

// commandRest reads what both shapes of a command tool have alike.
func (s *section) commandRest(t *CommandTool) {
	t.Title, t.Description = s.words("title"), s.words("description")
	t.Env = s.commandEnv()
	t.CwdRoot = s.folder("", "cwdRoot", "cwd_root")
	t.CwdFrom = s.text(propertyName, "cwdFrom", "cwd_from")
	if t.CwdFrom != "" && t.CwdRoot == "" {
		t.CwdRoot = t.Cwd // a caller who names the folder may not name any
	}
	schema := s.inputSchema()
	t.InputSchema = schema.text
	t.Secrets = s.secrets(schema)
	if t.CwdFrom != "" && !schema.knows(t.CwdFrom) {
		s.odd(s.line, s.key, "cwdFrom names the property "+shownName(t.CwdFrom)+", which inputSchema does not have")
	}
	t.Async = s.boolean(false, "async")
	t.Queue = s.commandQueue(t.Async)
	t.Restart = s.restart()
	t.Limits = s.limits()
	t.Sandbox = s.sandbox()
}

// words reads a text for people, as it is written: a description may well have
// a ${NAME} that is no variable of ours.
func (s *section) words(name string) string {
	pair, key, ok := s.take(name)
	if !ok {
		return ""
	}
	if pair.Value.Form != conffile.Text {
		s.wrong(pair.Value, key, "a text", false)
		return ""
	}
	return pair.Value.Text
}

func (s *section) commandEnv() map[string]string {
	env := s.table(envEntry, anyText, "env")
	if _, ok := env[markVariable]; ok {
		s.problem(s.pairs["env"].Line, s.sub("env")+"."+markVariable, "this variable is set by Signalbox for each run: want another name")
	}
	return env
}

// commandQueue is the tool queue of a command. An async one waits in the queue
// commands already and has none unless it asks for it.
func (s *section) commandQueue(async bool) string {
	if async && !s.has("queue") {
		s.known = append(s.known, "queue")
		return ""
	}
	return s.binding()
}

// addCommand takes a tool in that has no mistake.
func (s *section) addCommand(t CommandTool) {
	t.Values = s.filled // so that no output shows them
	s.outside(t)
	s.missing(t)
	section, _, _ := strings.Cut(s.key, ".")
	s.merge.addCommand(t, section)
}

// outside reports a working folder that cannot be, as far as one can tell by
// now: folders may be made and linked anew before a run, which checks itself.
func (s *section) outside(t CommandTool) {
	cwd, err1 := filepath.EvalSymlinks(t.Cwd)
	root, err2 := filepath.EvalSymlinks(t.CwdRoot)
	if t.CwdRoot == "" || err1 != nil || err2 != nil {
		return
	}
	if rel, err := filepath.Rel(root, cwd); err != nil || !filepath.IsLocal(rel) {
		s.problem(s.line, s.key, "its cwd does not lie within its cwdRoot")
	}
}

// missing says that a program is not there now. That is no mistake: it may come
// to be before somebody calls the tool.
func (s *section) missing(t CommandTool) {
	const cure = ": calls fail until it is"
	line := s.line
	if pair, ok := s.given("command"); ok {
		line = pair.Line
	}
	text := ""
	switch {
	case filepath.IsAbs(t.Command):
		info, err := os.Stat(t.Command)
		switch {
		case err != nil:
			text = "there is no such file now" + cure
		case info.IsDir() || info.Mode()&0o111 == 0:
			text = "it is not a program that can be run" + cure
		}
	case !s.onPath(t.Command):
		text = "it is not on PATH now" + cure
	}
	if text != "" {
		s.merge.note(s.where(line), s.sub("command"), text, true)
	}
}

// onPath reports whether a folder of PATH has such a program.
func (s *section) onPath(name string) bool {
	path, _ := s.env("PATH")
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); filepath.IsAbs(dir) && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// programPath is a command as it is run: a path relative to the file, or a name
// that is looked for on PATH.
func (s *section) programPath(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "/") {
		return s.path(text)
	}
	return text
}

// keyList is where a mcp-config.json has its tools, a list of them.
const keyList = "tools"

// atOnce reads how many async commands a file lets run side by side.
func (r *reader) atOnce(top *section) {
	n := top.whole(1, signalbox.MaxAgentSlots, "maxConcurrent", "maxParallelTasks")
	r.merge.maxConcurrent = max(r.merge.maxConcurrent, n)
}

// toolList reads the tools of a mcp-config.json and reports whether it has some. A
// key of that name that holds no list of sections is of another program.
func (r *reader) toolList(top *section) bool {
	pair, ok := top.given(keyList)
	if ok && !r.strict && pair.Value.Form == conffile.Section {
		// Another program may well mean something by it, so it is no mistake.
		top.known = append(top.known, keyList)
		r.odd(pair.Line, keyList, "want a list of tools, each a section with a name and a command, got "+form(pair.Value))
		return false
	}
	if !ok || pair.Value.Form != conffile.List || !sections(pair.Value.Items) {
		return false
	}
	if r.strict {
		r.problem(pair.Line, keyList, "want the tools under "+keyCommands+", each by its name, such as "+keyCommands+": {NAME: {command: …}}")
	}
	top.known = append(top.known, keyList)
	first := map[string]string{}
	for i, item := range pair.Value.Items {
		r.listed(item, fmt.Sprintf("%s[%d]", keyList, i), first)
	}
	return len(pair.Value.Items) > 0
}

func sections(items []*conffile.Node) bool {
	for _, item := range items {
		if item.Form == conffile.Section || item.Fault != "" {
			return true
		}
	}
	return len(items) == 0
}

// listed reads one tool of the list. What that program would pass over is left
// out here too, and said.
func (r *reader) listed(item *conffile.Node, key string, first map[string]string) {
	s := r.open(item, item.Line, key)
	if s == nil {
		return
	}
	name := s.words("name")
	if name != "" {
		s.key = keyList + "." + shownName(name)
	}
	left := ""
	switch {
	case s.off():
		r.merge.note(r.where(s.line), s.key, "it is switched off and left out", false)
		return
	case s.has("providerExecution"):
		left = "it is run by a provider of that program, which there is none of here"
	case name == "":
		left = "it has no name"
	case !s.has("command"):
		left = "it has no command"
	}
	if left != "" {
		r.merge.note(r.where(s.line), s.key, left+" (left out)", true)
		return
	}
	if at, twice := first[name]; twice {
		r.problem(s.line, s.key, "there is already a tool of that name, at "+at+": give one of them another name")
		return
	}
	first[name] = r.where(s.line)
	r.listedTool(name, s)
}

func (r *reader) listedTool(name string, s *section) {
	before := len(r.merge.problems)
	r.filled = nil
	t := CommandTool{Name: name, Where: r.where(s.line)}
	s.commandName(name, s.line)
	t.Command = s.programPath(s.text(notEmpty, "command"))
	t.Args = s.listedArgs()
	t.Cwd = s.listedCwd()
	t.Timeout = s.listedTimeout()
	s.commandRest(&t)
	s.finish(foreignCommand)
	if len(r.merge.problems) == before {
		s.addCommand(t)
	}
}

// listedArgs reads the arguments as that program does: all are texts, and
// those that are empty are left out.
func (s *section) listedArgs() []string {
	pair, key, ok := s.take("args")
	if !ok {
		return nil
	}
	if pair.Value.Form != conffile.List {
		s.problem(pair.Value.Line, key, "want a list, each item a text, got "+form(pair.Value))
		return nil
	}
	var out []string
	for i, item := range pair.Value.Items {
		sub := fmt.Sprintf("%s[%d]", key, i)
		text, good := "", true
		if item.Form != conffile.Nothing || item.Fault != "" {
			text, good = s.scalar(item, sub, anyText)
		}
		switch {
		case !good:
		case text == "":
			s.merge.note(s.where(item.Line), sub, "it is empty and left out", false)
		default:
			out = append(out, text)
		}
	}
	return out
}

// listedCwd reads the working folder. The word workspace is where that program
// was started: here, where the director was.
func (s *section) listedCwd() string {
	text := s.text(folderName, "cwd")
	switch {
	case text == "workspace" && s.dir != "":
		return s.dir
	case text == "":
		return s.base
	}
	return s.path(text)
}

// listedTimeout reads the limit of a run. A plain number is of milliseconds
// under both keys, as that program has it.
func (s *section) listedTimeout() time.Duration {
	s.millis = true
	s.sayUnit("timeoutMs")
	exact, first := s.duration(0, longestRun, "timeoutMs")
	loose, second := s.duration(0, longestRun, "timeout")
	if !first {
		return loose
	}
	if second && loose != exact {
		s.problem(s.pairs["timeout"].Line, s.sub("timeout"), "it says another time than timeoutMs, which stands at "+s.where(s.pairs["timeoutMs"].Line)+": give one of them")
	}
	return exact
}
