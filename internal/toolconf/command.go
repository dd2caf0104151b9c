package toolconf

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// longestRun bounds the timeout of a command: an async one may take days.
const longestRun = 7 * 24 * time.Hour

// markVariable is set for each run, so that every process of the run can be found.
const markVariable = "SIGNALBOX_RUN"

var commandName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// takenNames are not available for command tools, whose names have no prefix: the
// first two are parts of HTTP routes, the others are the tools of the queue itself.
var takenNames = []string{
	"tasks", "queues",
	"submit_task", "task_status", "task_output", "cancel_task", "list_agents", "queue_status", "chat_with_agent", "land_task",
}

var (
	propertyName = rule{want: "the name of a property of the input", ok: shortLine}
	folderName   = rule{want: "a folder", secret: true, ok: notEmpty.ok}
	// words are texts for people. Variables are not expanded: a description may
	// contain ${NAME} for another purpose.
	words = rule{want: "a text", raw: true}
)

// commandTool reads one command tool of the section commandTools.
func (r *reader) commandTool(name string, s *section) func() {
	t := s.newCommand(name)
	if !s.has("command") {
		s.problem(s.line, s.key, "it has no command: want the program to run")
	}
	s.command(&t.Command, &t.Args)
	s.folder(&t.Cwd, "cwd")
	s.noteUnit("timeoutMs")
	s.duration(&t.Timeout, 0, longestRun, "timeout", "timeoutMs")
	return s.commandRest(t)
}

// folder reads a path to a folder, relative to the folder of the file.
func (s *section) folder(to *string, names ...string) {
	text := ""
	if s.text(&text, folderName, names...); text != "" {
		*to = s.path(text)
	}
}

// newCommand checks the name and returns a tool with the default values.
func (s *section) newCommand(name string) *CommandTool {
	switch {
	case len(name) > 128 || !commandName.MatchString(name):
		s.problem(s.line, s.key, "want 1 to 128 letters, digits, dots, underscores or hyphens as its name")
	case slices.Contains(takenNames, name):
		s.problem(s.line, s.key, "want another name: "+name+" is one of Signalbox's own")
	case strings.HasPrefix(name, reserved+"__"):
		s.problem(s.line, s.key, "want another name: those of the REST tools begin with "+reserved+"__")
	}
	return &CommandTool{
		Name: name, Where: s.where(s.line), Cwd: s.base, Restart: Restart{Pending: Keep, Running: Fail}, Limits: CommandLimits{Output: DefaultOutput},
		Sandbox: Sandbox{Mode: SandboxOff},
	}
}

// commandRest reads the keys that both forms of a command tool share.
func (s *section) commandRest(t *CommandTool) func() {
	if t.Command = strings.TrimSpace(t.Command); strings.Contains(t.Command, "/") {
		t.Command = s.path(t.Command) // otherwise it is looked up on PATH
	}
	s.text(&t.Title, words, "title")
	s.text(&t.Description, words, "description")
	s.table(&t.Env, envEntry, anyText, "env")
	if _, ok := t.Env[markVariable]; ok {
		s.problem(s.pairs["env"].Line, s.sub("env")+"."+markVariable, "this variable is set by Signalbox for each run: want another name")
	}
	s.folder(&t.CwdRoot, "cwdRoot", "cwd_root")
	s.text(&t.CwdFrom, propertyName, "cwdFrom", "cwd_from")
	if t.CwdFrom != "" && t.CwdRoot == "" {
		t.CwdRoot = t.Cwd // if callers name the folder, it must be limited
	}
	input := s.inputSchema()
	t.InputSchema = input.text
	t.Secrets = s.secrets(input)
	if t.CwdFrom != "" && !input.knows(t.CwdFrom) {
		s.odd(s.line, s.key, "cwdFrom names the property "+shownName(t.CwdFrom)+", which inputSchema does not have")
	}
	s.boolean(&t.Async, "async")
	if t.Async && !s.has("queue") { // it already waits in the queue commands
		s.known = append(s.known, "queue")
	} else {
		s.queueOf(&t.Queue)
	}
	s.restart(&t.Restart)
	s.limits(&t.Limits)
	s.sandbox(&t.Sandbox)
	return func() { s.addCommand(*t) }
}

// restart reads what happens to a tool's tasks at a restart: one word for pending
// and running tasks, or a section.
func (s *section) restart(to *Restart) {
	s.inside("restart", func(n *conffile.Node, key string) {
		word := ""
		switch s.textOf(&word, n, key, oneOf(Fail, Requeue, Keep)); word {
		case Fail:
			to.Pending = Fail // seed async-task-queue: both end
		case Requeue:
			to.Running = Requeue
		}
	}, func(in *section) {
		in.text(&to.Pending, oneOf(Keep, Fail), "pending")
		in.text(&to.Running, oneOf(Fail, Requeue), "running")
	})
}

func (s *section) limits(to *CommandLimits) {
	s.inside("limits", nil, func(in *section) {
		in.size(&to.Memory, 1<<20, 1<<50, "memory")
		in.cores(&to.CPUs, "cpus")
		in.duration(&to.CPUTime, time.Millisecond, longestRun, "cpuTime", "cpu_time", "cpuTimeMs")
		in.whole(&to.Processes, 1, 1_000_000, "processes")
		in.size(&to.FileSize, 1, 1<<50, "fileSize", "file_size")
		in.whole(&to.OpenFiles, 8, 1_000_000, "openFiles", "open_files")
		in.size(&to.Output, 1, 1<<40, "output")
	})
}

// sandbox reads what a run may access: a mode, or a section with a mode.
func (s *section) sandbox(to *Sandbox) {
	modes := oneOf(SandboxOff, SandboxAuto, SandboxRequired)
	s.inside("sandbox", func(n *conffile.Node, key string) { s.textOf(&to.Mode, n, key, modes) }, func(in *section) {
		// Someone who lists what a run may access expects it to be enforced. Whether
		// it must be is not guessed.
		if !in.has("mode") {
			in.problem(in.line, in.key, "it has no mode: want auto (where this machine has a sandbox) or required (a run without it is refused)")
		}
		in.text(&to.Mode, modes, "mode")
		in.text(&to.Kind, oneOf("bubblewrap", "landlock"), "kind")
		in.folders(&to.Read, "read")
		in.folders(&to.Write, "write")
		in.boolean(&to.Network, "network")
	})
}

// addCommand adds a tool without errors.
func (s *section) addCommand(t CommandTool) {
	t.Values = s.filled // so that no output shows them
	s.outside(t)
	s.missing(t)
	section, _, _ := strings.Cut(s.key, ".")
	add(s.merge, s.merge.commands, t, t.Name, section, "another tool")
}

// outside reports a working folder outside of cwdRoot, as far as that is known now:
// folders and links may change before a run, which checks again.
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

// missing notes that a program does not exist now. That is not an error: it may be
// installed before somebody calls the tool.
func (s *section) missing(t CommandTool) {
	text := ""
	switch info, err := os.Stat(t.Command); {
	case !filepath.IsAbs(t.Command):
		path, _ := s.env("PATH")
		if !slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
			info, err := os.Stat(filepath.Join(dir, t.Command))
			return filepath.IsAbs(dir) && err == nil && runnable(info)
		}) {
			text = "it is not on PATH now"
		}
	case err != nil:
		text = "there is no such file now"
	case !runnable(info):
		text = "it is not a program that can be run"
	}
	if text == "" {
		return
	}
	line := s.line
	if pair, ok := s.given("command"); ok {
		line = pair.Line
	}
	s.merge.note(s.where(line), s.sub("command"), text+": calls fail until it is", true)
}

func runnable(info os.FileInfo) bool { return !info.IsDir() && info.Mode()&0o111 != 0 }

// keyList is the key of the list of tools in a mcp-config.json.
const keyList = "tools"

// toolList reads the tools of a mcp-config.json. If the key is not a list of
// sections, it belongs to another program.
func (r *reader) toolList(top *section) {
	pair, ok := top.given(keyList)
	switch {
	case !ok:
		return
	case !r.strict && pair.Value.Form == conffile.Section:
		// It may have a meaning for another program, so it is not an error.
		top.known = append(top.known, keyList)
		r.odd(pair.Line, keyList, "want a list of tools, each a section with a name and a command, got "+form(pair.Value))
		return
	case pair.Value.Form != conffile.List || len(pair.Value.Items) > 0 && !slices.ContainsFunc(pair.Value.Items, isTool):
		return
	case r.strict:
		r.problem(pair.Line, keyList, "want the tools under "+keyCommands+", each by its name, such as "+keyCommands+": {NAME: {command: …}}")
	}
	top.known = append(top.known, keyList)
	first := map[string]string{}
	for i, item := range pair.Value.Items {
		r.listed(item, fmt.Sprintf("%s[%d]", keyList, i), first)
	}
	r.named += len(pair.Value.Items)
}

func isTool(n *conffile.Node) bool { return n.Form == conffile.Section || n.Fault != "" }

// listed reads one tool of the list. An entry that the other program would skip is
// skipped here too, with a note.
func (r *reader) listed(item *conffile.Node, key string, first map[string]string) {
	s := r.open(item, item.Line, key)
	if s == nil {
		return
	}
	name := ""
	if s.text(&name, words, "name"); name != "" {
		s.key = keyList + "." + shownName(name)
	}
	if s.off() {
		return
	}
	left := ""
	switch {
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
	s.entry(name, foreignCommand, r.listedTool)
}

func (r *reader) listedTool(name string, s *section) func() {
	t := s.newCommand(name)
	s.text(&t.Command, notEmpty, "command")
	s.listedArgs(&t.Args)
	// workspace is the folder in which the other program was started; here, the
	// folder in which the director was started.
	cwd := ""
	switch s.text(&cwd, folderName, "cwd"); {
	case cwd == "workspace" && s.dir != "":
		t.Cwd = s.dir
	case cwd != "":
		t.Cwd = s.path(cwd)
	}
	s.listedTimeout(&t.Timeout)
	return s.commandRest(t)
}

// listedArgs reads the arguments as the other program does: all are texts, and empty
// ones are left out.
func (s *section) listedArgs(to *[]string) {
	pair, key, ok := s.take("args")
	if !ok {
		return
	}
	s.items(pair.Value, key, anyText, func(item *conffile.Node, sub string) {
		text, good := "", true
		if item.Form != conffile.Nothing || item.Fault != "" {
			text, good = s.scalar(item, sub, anyText)
		}
		switch {
		case !good:
		case text == "":
			s.merge.note(s.where(item.Line), sub, "it is empty and left out", false)
		default:
			*to = append(*to, text)
		}
	})
}

// listedTimeout reads the timeout of a run. A plain number counts milliseconds under
// both keys, as in the other program.
func (s *section) listedTimeout(to *time.Duration) {
	s.millis = true
	s.noteUnit("timeoutMs")
	exact, loose := time.Duration(-1), time.Duration(-1)
	s.duration(&exact, 0, longestRun, "timeoutMs")
	s.duration(&loose, 0, longestRun, "timeout")
	if exact >= 0 && loose >= 0 && loose != exact {
		s.problem(s.pairs["timeout"].Line, s.sub("timeout"), "it differs from timeoutMs, which is at "+s.where(s.pairs["timeoutMs"].Line)+": give one of them")
	}
	if *to = exact; exact < 0 {
		*to = max(loose, 0)
	}
}
