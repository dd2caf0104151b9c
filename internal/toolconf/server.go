package toolconf

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// reserved is what the names of REST tools begin with.
const reserved = "rest"

// ownServers are names of what Signalbox itself has: the command tools and the
// queue as tools.
var ownServers = []string{"commands", "signalbox"}

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

var (
	toolName  = rule{want: "the name of a tool", ok: func(s string) bool { return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, control) }}
	anyText   = rule{want: "a text", secret: true}
	notEmpty  = rule{want: "a text that is not empty", secret: true, ok: func(s string) bool { return strings.TrimSpace(s) != "" }}
	envEntry  = rule{want: "the name of a variable", ok: func(s string) bool { return s != "" && !strings.ContainsAny(s, "=\x00") }}
	headerKey = rule{want: "the name of a header", ok: headerName.MatchString}
	headerVal = rule{want: "a text of one line", secret: true, ok: func(s string) bool { return !strings.ContainsFunc(s, control) }}
	probe     = rule{want: "ping, listTools or off", ok: func(s string) bool { return slices.Contains([]string{"ping", "listTools", "off"}, s) }}
)

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// provider checks the name of a server or of a description: it stands before
// the names of its tools.
func (s *section) provider(name string) bool {
	text := ""
	switch {
	case !serverName.MatchString(name):
		text = "want 1 to 64 letters, digits, underscores or hyphens as its name"
	case strings.Contains(name, "__") || strings.HasSuffix(name, "_"):
		text = "want a name without two underscores in a row, and none at its end: they stand between it and a tool's name"
	case slices.Contains(ownServers, name):
		text = "want another name: " + name + " is what Signalbox's own tools stand under"
	case name == reserved:
		text = "want another name: those of the REST tools begin with " + reserved + "__"
	}
	if text != "" {
		s.problem(s.line, s.key, text)
	}
	return text == ""
}

func (r *reader) server(name string, s *section) {
	before := len(r.merge.problems)
	s.provider(name)
	srv := Server{Name: name, Where: r.where(s.line)}
	r.filled = nil
	r.reach(s, &srv)
	srv.Secrets = r.filled
	srv.ToolsAllowed = s.toolList("toolsAllowed", "includeTools", "enabledTools", "tools")
	if slices.Contains(srv.ToolsAllowed, "*") {
		srv.ToolsAllowed = nil
	}
	srv.ToolsDenied = s.toolList("toolsDenied", "excludeTools", "disabledTools")
	srv.Shared = s.boolean(true, "shared")
	if srv.HealthProbe = s.text(probe, "healthProbe"); srv.HealthProbe == "" {
		srv.HealthProbe = "ping"
	}
	srv.RequestTimeout = s.timeout()
	srv.Queue = s.binding()
	srv.ToolQueues = s.toolBindings()
	s.finish(foreignServer)
	if len(r.merge.problems) == before {
		r.merge.addServer(srv)
	}
}

// names are those of a key: ours, and in a file that others read too theirs.
func (s *section) names(ours string, theirs ...string) []string {
	if s.strict {
		return []string{ours}
	}
	return append([]string{ours}, theirs...)
}

func (s *section) toolList(ours string, theirs ...string) []string {
	return s.texts(toolName, s.names(ours, theirs...)...)
}

// timeout reads the limit of one call.
func (s *section) timeout() time.Duration {
	s.sayUnit("requestTimeoutMs")
	d, _ := s.duration(time.Millisecond, longest, "timeout", "requestTimeoutMs", "timeoutMs")
	return d
}

// sayUnit notes what a plain number is taken for in a file that others read
// too, and the key that leaves no doubt.
func (s *section) sayUnit(clear string) {
	if pair, ok := s.given("timeout"); ok && !s.strict && pair.Value.Form == conffile.Number {
		word := "seconds"
		if s.unit(pair) == time.Millisecond {
			word = "milliseconds"
		}
		s.merge.note(s.where(pair.Line), s.sub("timeout"), conffile.Cut(pair.Value.Text)+" is taken for "+word+": "+clear+" leaves no doubt", false)
	}
}

// reach reads how a server is reached.
func (r *reader) reach(s *section, srv *Server) {
	types, urls := s.names("type", "transport", "transportType"), s.names("url", "httpUrl", "serverUrl")
	kind := s.text(rule{want: "stdio, http, sse or websocket", ok: func(t string) bool { return transports[strings.ToLower(t)] != "" }}, types...)
	srv.Command, srv.Args = s.command()
	srv.Env = s.table(envEntry, anyText, s.names("env", "environment")...)
	if srv.Cwd = s.text(notEmpty, "cwd"); srv.Cwd != "" {
		srv.Cwd = s.path(srv.Cwd)
	}
	srv.URL = s.text(notEmpty, urls...)
	srv.Headers = s.table(headerKey, headerVal, s.names("headers", "http_headers")...)
	if srv.Transport = transports[strings.ToLower(kind)]; srv.Transport == "" {
		if _, given := s.given(types...); given {
			return // it has been reported
		}
		srv.Transport = s.guess(srv.URL, urls)
	}
	if kind == "remote" && strings.HasSuffix(strings.TrimSuffix(srv.URL, "/"), "/sse") {
		srv.Transport = SSE
	}
	switch srv.Transport {
	case "":
	case Stdio:
		s.fitsCommand(srv, urls)
	default:
		s.fitsURL(srv, urls)
	}
}

// guess tells the transport of a server that does not name it.
func (s *section) guess(address string, urls []string) Transport {
	_, command := s.given("command")
	_, elsewhere := s.given(urls...)
	switch {
	case command && elsewhere:
		s.problem(s.line, s.key, "it has both a command and a url: want one of them, or a type that says which counts")
	case command:
		return Stdio
	case elsewhere:
		if scheme, _, _ := strings.Cut(strings.ToLower(address), ":"); scheme == "ws" || scheme == "wss" {
			return WebSocket
		}
		return HTTP
	default:
		s.problem(s.line, s.key, "it has neither a command nor a url: want the command that starts the server, or the url where it is")
	}
	return ""
}

// transports are the words for them, those of other programs included.
var transports = map[string]Transport{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamablehttp": HTTP, "streamable_http": HTTP, "remote": HTTP,
	"sse": SSE, "websocket": WebSocket, "ws": WebSocket,
}

// fitsCommand checks that the keys are those of a server that is started here.
func (s *section) fitsCommand(srv *Server, urls []string) {
	if _, ok := s.given("command"); !ok {
		s.problem(s.line, s.key, "it has no command: want the one that starts the server")
	}
	if _, ok := s.given(urls...); ok || srv.Headers != nil {
		s.odd(s.line, s.key, "it is started by a command: url and headers are for servers elsewhere")
		srv.URL, srv.Headers = "", nil
	}
}

// fitsURL checks that the keys are those of a server elsewhere.
func (s *section) fitsURL(srv *Server, urls []string) {
	if _, ok := s.given("command"); ok || srv.Args != nil || srv.Env != nil || srv.Cwd != "" {
		s.odd(s.line, s.key, "it is reached by its url: command, args, env and cwd are for servers that are started here")
		srv.Command, srv.Args, srv.Env, srv.Cwd = "", nil, nil, ""
	}
	pair, ok := s.given(urls...)
	example, schemes := "http://127.0.0.1:3000/mcp", []string{"http", "https"}
	if srv.Transport == WebSocket {
		example, schemes = "ws://127.0.0.1:3000/mcp", []string{"ws", "wss"}
	}
	switch {
	case !ok:
		s.problem(s.line, s.key, "it has no url: want the one where the server is")
	case srv.URL != "" && !validURL(srv.URL, schemes...): // an empty one has been reported
		s.problem(pair.Value.Line, s.sub(pair.Key), "want a URL such as "+example+", got another text")
	}
}

// command reads the command with its arguments; some write both as one list.
func (s *section) command() (string, []string) {
	args := s.texts(anyText, "args")
	pair, key, ok := s.take("command")
	if !ok {
		return "", args
	}
	if pair.Value.Form != conffile.List {
		return s.program(s.textOf(pair.Value, key, notEmpty)), args
	}
	list := s.texts(anyText, "command")
	if len(list) == 0 || strings.TrimSpace(list[0]) == "" {
		s.problem(pair.Value.Line, key, "want the program first")
		return "", args
	}
	return s.program(list[0]), append(list[1:len(list):len(list)], args...)
}

// program fills in ~; a name without a slash is looked for on PATH.
func (s *section) program(text string) string {
	if strings.HasPrefix(text, "~/") {
		return s.path(text)
	}
	return text
}

func validURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != ""
}

const (
	maxConcurrent = 1_000_000
	longest       = 24 * time.Hour // of a timeout, a wait or a lease

	// A session lease that is asked for with no figures ends soon enough for
	// others to have their turn.
	defaultIdle = time.Minute
	defaultHold = 10 * time.Minute
)

var queueName = rule{want: "a queue's name: 1 to 64 letters, digits, dots, underscores or hyphens", ok: signalbox.ValidName}

func (r *reader) queues(top *section) {
	pair, _, ok := top.take(keyQueues)
	if !ok {
		return
	}
	all := r.open(pair.Value, pair.Line, keyQueues)
	if all == nil {
		return
	}
	r.merge.blocks = append(r.merge.blocks, r.where(pair.Line))
	for _, p := range all.list {
		r.merge.named[p.Key] = true
		key := keyQueues + "." + shownName(p.Key)
		if !queueName.ok(p.Key) {
			r.problem(p.Line, key, "want "+queueName.want)
			continue
		}
		if s := r.open(p.Value, p.Line, key); s != nil {
			r.queue(p.Key, s)
		}
	}
}

func (r *reader) queue(name string, s *section) {
	q := Queue{Where: r.where(s.line)}
	if _, given := s.given("concurrent"); !given {
		r.problem(s.line, s.key, "it has no concurrent: want how many calls may run side by side, such as concurrent: 4")
	}
	q.Concurrent = s.whole(1, maxConcurrent, "concurrent")
	q.MaxWait, _ = s.duration(0, longest, "max_wait", "maxWaitMs")
	q.MaxWaiters = s.whole(0, maxConcurrent, "max_waiters", "maxWaiters")
	q.LeaseIdle, q.LeaseHold = r.lease(s)
	q.Shared = s.boolean(false, "shared")
	s.finish(nil)
	if q.Concurrent > 0 {
		r.merge.addQueue(name, q)
	}
}

// lease reads the session lease of a queue: true, or its bounds.
func (r *reader) lease(s *section) (idle, hold time.Duration) {
	pair, key, ok := s.take("session")
	if !ok {
		return 0, 0
	}
	if pair.Value.Form == conffile.Boolean {
		if pair.Value.Text == "true" {
			return defaultIdle, defaultHold
		}
		return 0, 0
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "true, or a section with idle and max_hold", false)
		return 0, 0
	}
	in := r.open(pair.Value, pair.Line, key)
	if in == nil {
		return 0, 0
	}
	idle, hold = defaultIdle, defaultHold
	if d, ok := in.duration(time.Millisecond, longest, "idle", "idleMs"); ok {
		idle = d
	}
	if d, ok := in.duration(0, longest, "max_hold", "maxHoldMs"); ok {
		hold = d
	}
	in.finish(nil)
	return idle, hold
}

// binding reads which queue the tools of an entry are bound to.
func (s *section) binding() string {
	name := cmp.Or(s.text(queueName, "queue"), toolqueue.Default)
	line := s.line
	if pair, ok := s.given("queue"); ok {
		line = pair.Line
	}
	s.refer(line, s.key+".queue", name)
	return name
}

// toolBindings reads the queues of single tools.
func (s *section) toolBindings() map[string]string {
	out := s.table(toolName, queueName, "toolQueues")
	pair, ok := s.given("toolQueues")
	if !ok {
		return out
	}
	for _, p := range pair.Value.Pairs {
		if queue, ok := out[p.Key]; ok {
			s.refer(p.Line, s.sub("toolQueues")+"."+shownName(p.Key), queue)
		}
	}
	return out
}

func (s *section) refer(line int, key, queue string) {
	s.merge.refs = append(s.merge.refs, reference{where: s.where(line), key: key, queue: queue})
}
