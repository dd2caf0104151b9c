package toolconf

import (
	"errors"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// Source says where tools are named.
type Source struct {
	Own   Own
	Files []File
	Env   conffile.Env
	Home  string // what ~ stands for; "": nothing
	Dir   string // the folder in which the program was started
}

// Own are the sections of signalbox.yaml, as far as they are of tools.
type Own struct {
	Name  string // of the file, as the person knows it
	Base  string // its folder
	Pairs []conffile.Pair
}

// File is a file of tools.
type File struct {
	Name string // as the person knows it
	Path string // absolute
	From string // who names it: file:line, a variable or a flag
}

// The keys that Own has.
const (
	keyQueues   = "queues"
	keyServers  = "mcpServers"
	keyRest     = "restTools"
	keyOpenAPI  = "openapiSpecs"
	keyCommands = "commandTools"
)

// Load reads and merges all sources and returns all that is wrong with them.
// With a mistake, the Config is the zero one.
func Load(src Source) (Config, conffile.Problems) {
	m := newMerge()
	if len(src.Own.Pairs) > 0 {
		r := reader{name: src.Own.Name, strict: true, base: src.Own.Base, home: src.Home, dir: src.Dir, env: src.Env, merge: m}
		r.read(&conffile.Node{Form: conffile.Section, Pairs: src.Own.Pairs})
	}
	seen := map[string]bool{}
	for _, file := range src.Files {
		if !seen[file.Path] {
			seen[file.Path] = true
			m.file(file, src)
		}
	}
	return m.finish()
}

// file reads a file of tools.
func (m *merge) file(file File, src Source) {
	format := conffile.FormatOf(file.Path)
	r := reader{name: file.Name, strict: format == conffile.YAML, base: folder(file.Path), home: src.Home, dir: src.Dir, env: src.Env, merge: m}
	root, err := conffile.Read(file.Path, format)
	var bad *conffile.Error
	switch {
	case errors.As(err, &bad) && bad.Line > 0:
		m.problem(conffile.Where(file.Name, bad.Line), "", bad.Text)
	case err != nil:
		m.problem(file.From, "tools", file.Name+": "+err.Error())
	case root == nil:
		m.note(file.Name, "", "the file is empty", true)
	default:
		r.read(root)
	}
}

// read takes a whole file in.
func (r *reader) read(root *conffile.Node) {
	top := r.open(root, root.Line, "")
	if top == nil {
		return
	}
	before := len(r.merge.problems)
	named := false
	each := func(key string, f func(name string, s *section)) {
		named = r.each(top, key, f) || named
	}
	r.queues(top)
	each(keyServers, r.server)
	each(keyRest, r.rest)
	each(keyOpenAPI, r.openapi)
	each(keyCommands, r.commandTool)
	named = r.toolList(top) || named
	r.atOnce(top)
	r.elsewhere(top)
	top.finish(foreignTop)
	if _, queues := top.pairs[keyQueues]; !named && !queues && !r.strict && len(r.merge.problems) == before {
		r.merge.note(r.name, "", "the file names no tools: want them under "+keyServers+", "+keyRest+", "+keyOpenAPI+" or "+keyCommands, true)
	}
}

// each calls f for the entries of a section that are not switched off, and
// reports whether there were any entries.
func (r *reader) each(top *section, key string, f func(string, *section)) bool {
	pair, _, ok := top.take(key)
	if !ok {
		return false
	}
	all := r.open(pair.Value, pair.Line, key)
	if all == nil {
		return true
	}
	for _, p := range all.list {
		s := r.open(p.Value, p.Line, key+"."+shownName(p.Key))
		if s == nil {
			continue
		}
		if s.off() {
			r.merge.note(r.where(p.Line), s.key, "it is switched off and left out", false)
			continue
		}
		f(p.Key, s)
	}
	return len(all.list) > 0
}
