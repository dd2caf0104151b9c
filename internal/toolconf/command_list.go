package toolconf

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

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
