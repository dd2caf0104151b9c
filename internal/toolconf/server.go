package toolconf

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// reserved is the prefix of the names of REST tools.
const reserved = "rest"

// ownServers are the servers that Signalbox itself provides: the command tools and the
// tools of the queue.
var ownServers = []string{"commands", "signalbox"}

var (
	// entryForm is the name of a server, a description or a REST tool.
	entryForm  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

var (
	toolName  = rule{want: "the name of a tool", ok: shortLine}
	anyText   = rule{want: "a text", secret: true}
	notEmpty  = rule{want: "a text that is not empty", secret: true, ok: func(s string) bool { return strings.TrimSpace(s) != "" }}
	envEntry  = rule{want: "the name of a variable", ok: func(s string) bool { return s != "" && !strings.ContainsAny(s, "=\x00") }}
	headerKey = rule{want: "the name of a header", ok: headerName.MatchString}
	headerVal = rule{want: "a text of one line", secret: true, ok: oneLine}
	probe     = oneOf("ping", "listTools", "off")
	transport = rule{want: "stdio, http, sse or websocket", ok: func(s string) bool { return transports[strings.ToLower(s)] != "" }}
)

func entryName(s string) bool { return len(s) <= 64 && entryForm.MatchString(s) }

func oneLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func shortLine(s string) bool { return s != "" && len(s) <= 256 && oneLine(s) }

const wantEntryName = "want 1 to 64 letters, digits, underscores or hyphens as its name"

// provider checks the name of a server or of a description, which is the prefix of
// the names of its tools.
func (s *section) provider(name string) {
	switch {
	case !entryName(name):
		s.problem(s.line, s.key, wantEntryName)
	case strings.Contains(name, "__") || strings.HasSuffix(name, "_"):
		s.problem(s.line, s.key, "want a name without two underscores in a row, and none at its end: they stand between it and a tool's name")
	case slices.Contains(ownServers, name):
		s.problem(s.line, s.key, "want another name: "+name+" is what Signalbox's own tools stand under")
	case name == reserved:
		s.problem(s.line, s.key, "want another name: those of the REST tools begin with "+reserved+"__")
	}
}

func (r *reader) server(name string, s *section) func() {
	s.provider(name)
	srv := Server{Name: name, Where: r.where(s.line), Shared: true, HealthProbe: "ping"}
	s.reach(&srv)
	srv.Secrets = r.filled
	s.texts(&srv.ToolsAllowed, toolName, s.names("toolsAllowed", "includeTools", "enabledTools", "tools")...)
	if slices.Contains(srv.ToolsAllowed, "*") {
		srv.ToolsAllowed = nil
	}
	s.texts(&srv.ToolsDenied, toolName, s.names("toolsDenied", "excludeTools", "disabledTools")...)
	s.boolean(&srv.Shared, "shared")
	s.text(&srv.HealthProbe, probe, "healthProbe")
	s.timeout(&srv.RequestTimeout)
	s.queueOf(&srv.Queue)
	s.queuesOf(&srv.ToolQueues)
	return func() { r.merge.addServer(srv) }
}

// names are the names of a key: ours, and in a file that other programs read too also
// theirs.
func (s *section) names(ours string, theirs ...string) []string {
	if s.strict {
		return []string{ours}
	}
	return append([]string{ours}, theirs...)
}

// timeout reads the timeout of one call.
func (s *section) timeout(to *time.Duration) {
	s.noteUnit("requestTimeoutMs")
	s.duration(to, time.Millisecond, longest, "timeout", "requestTimeoutMs", "timeoutMs")
}

// reach reads how a server is reached.
func (s *section) reach(srv *Server) {
	types, urls := s.names("type", "transport", "transportType"), s.names("url", "httpUrl", "serverUrl")
	kind := ""
	s.text(&kind, transport, types...)
	s.command(&srv.Command, &srv.Args)
	s.table(&srv.Env, envEntry, anyText, s.names("env", "environment")...)
	if s.text(&srv.Cwd, notEmpty, "cwd"); srv.Cwd != "" {
		srv.Cwd = s.path(srv.Cwd)
	}
	s.text(&srv.URL, notEmpty, urls...)
	s.table(&srv.Headers, headerKey, headerVal, s.names("headers", "http_headers")...)
	srv.Transport = transports[strings.ToLower(kind)]
	if srv.Transport == "" && !s.has(types...) {
		srv.Transport = s.guess(srv.URL, urls)
	}
	if kind == "remote" && strings.HasSuffix(strings.TrimSuffix(srv.URL, "/"), "/sse") {
		srv.Transport = SSE
	}
	switch srv.Transport {
	case "": // it has been reported
	case Stdio:
		s.fitsCommand(srv, urls)
	default:
		s.fitsURL(srv, urls)
	}
}

// guess returns the transport of a server that does not name one.
func (s *section) guess(address string, urls []string) Transport {
	command, elsewhere := s.has("command"), s.has(urls...)
	scheme, _, _ := strings.Cut(strings.ToLower(address), ":")
	switch {
	case command && elsewhere:
		s.problem(s.line, s.key, "it has both a command and a url: want one of them, or a type that says which counts")
	case command:
		return Stdio
	case elsewhere && (scheme == "ws" || scheme == "wss"):
		return WebSocket
	case elsewhere:
		return HTTP
	default:
		s.problem(s.line, s.key, "it has neither a command nor a url: want the command that starts the server, or the url where it is")
	}
	return ""
}

// transports are the names of the transports, including those of other programs.
var transports = map[string]Transport{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamablehttp": HTTP, "streamable_http": HTTP, "remote": HTTP,
	"sse": SSE, "websocket": WebSocket, "ws": WebSocket,
}

// fitsCommand checks the keys of a server that is started here.
func (s *section) fitsCommand(srv *Server, urls []string) {
	if !s.has("command") {
		s.problem(s.line, s.key, "it has no command: want the one that starts the server")
	}
	if s.has(urls...) || srv.Headers != nil {
		s.odd(s.line, s.key, "it is started by a command: url and headers are for servers elsewhere")
		srv.URL, srv.Headers = "", nil
	}
}

// fitsURL checks the keys of a server that runs elsewhere.
func (s *section) fitsURL(srv *Server, urls []string) {
	if s.has("command") || srv.Args != nil || srv.Env != nil || srv.Cwd != "" {
		s.odd(s.line, s.key, "it is reached by its url: command, args, env and cwd are for servers that are started here")
		srv.Command, srv.Args, srv.Env, srv.Cwd = "", nil, nil, ""
	}
	scheme := "http"
	if srv.Transport == WebSocket {
		scheme = "ws"
	}
	if pair, ok := s.given(urls...); !ok {
		s.problem(s.line, s.key, "it has no url: want the one where the server is")
	} else if srv.URL != "" && !validURL(srv.URL, scheme, scheme+"s") { // an empty one has been reported
		s.problem(pair.Value.Line, s.sub(pair.Key), "want a URL such as "+scheme+"://127.0.0.1:3000/mcp, got another text")
	}
}

// command reads the command with its arguments; some write both as one list.
func (s *section) command(to *string, args *[]string) {
	s.texts(args, anyText, "args")
	pair, key, ok := s.take("command")
	switch {
	case !ok:
		return
	case pair.Value.Form == conffile.List:
		var list []string
		s.texts(&list, anyText, "command")
		if len(list) == 0 || strings.TrimSpace(list[0]) == "" {
			s.problem(pair.Value.Line, key, "want the program first")
			return
		}
		*to, *args = list[0], append(list[1:len(list):len(list)], *args...)
	default:
		s.textOf(to, pair.Value, key, notEmpty)
	}
	if strings.HasPrefix(*to, "~/") { // a name without a slash is looked for on PATH
		*to = s.path(*to)
	}
}

func validURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != ""
}

const (
	maxConcurrent = 1_000_000
	longest       = 24 * time.Hour // of a timeout, a wait or a lease

	// The default limits of a session lease.
	defaultIdle = time.Minute
	defaultHold = 10 * time.Minute
)

var queueName = rule{want: "a queue's name: 1 to 64 letters, digits, dots, underscores or hyphens", ok: signalbox.ValidName}

func (r *reader) queues(top *section) {
	if pair, ok := top.given(keyQueues); ok && pair.Value.Form == conffile.Section {
		r.merge.blocks = append(r.merge.blocks, r.where(pair.Line))
	}
	top.entries(keyQueues, func(p conffile.Pair, key string) {
		r.merge.named[p.Key] = true
		if !queueName.ok(p.Key) {
			r.problem(p.Line, key, "want "+queueName.want)
		} else if s := r.open(p.Value, p.Line, key); s != nil {
			r.queue(p.Key, s)
		}
	})
}

func (r *reader) queue(name string, s *section) {
	q := Queue{Where: r.where(s.line)}
	if !s.has("concurrent") {
		r.problem(s.line, s.key, "it has no concurrent: want how many calls may run side by side, such as concurrent: 4")
	}
	s.whole(&q.Concurrent, 1, maxConcurrent, "concurrent")
	s.duration(&q.MaxWait, 0, longest, "max_wait", "maxWaitMs")
	s.whole(&q.MaxWaiters, 0, maxConcurrent, "max_waiters", "maxWaiters")
	s.lease(&q)
	s.rate(&q)
	s.per(&q)
	s.boolean(&q.Shared, "shared")
	s.finish(nil)
	if q.Concurrent > 0 {
		r.merge.addQueue(name, q)
	}
}

// lease reads the session lease of a queue: true, or its bounds.
func (s *section) lease(q *Queue) {
	s.inside("session", func(n *conffile.Node, key string) {
		if n.Form != conffile.Boolean {
			s.wrong(n, key, "true, or a section with idle and max_hold", false)
		} else if n.Text == "true" {
			q.LeaseIdle, q.LeaseHold = defaultIdle, defaultHold
		}
	}, func(in *section) {
		q.LeaseIdle, q.LeaseHold = defaultIdle, defaultHold
		in.duration(&q.LeaseIdle, time.Millisecond, longest, "idle", "idleMs")
		in.duration(&q.LeaseHold, 0, longest, "max_hold", "maxHoldMs")
	})
}

// rate reads how often calls of a queue start.
func (s *section) rate(q *Queue) {
	s.inside("rate", nil, func(in *section) {
		rate, before := toolqueue.Rate{}, len(s.merge.problems)
		if !in.has("n") || !in.has("per") {
			in.problem(in.line, in.key, "want n and per, how many calls start in how long, such as {n: 60, per: 1m, burst: 10}")
		}
		in.whole(&rate.N, 1, toolqueue.MaxRate, "n")
		in.duration(&rate.Per, toolqueue.MinPer, toolqueue.MaxPer, "per")
		in.whole(&rate.Burst, 1, toolqueue.MaxRate, "burst")
		if len(s.merge.problems) > before {
			return
		}
		if text := rate.Check(); text != "" {
			in.problem(in.line, in.key, text)
			return
		}
		q.Rate = rate
	})
}

// per reads for what each the limits of a queue hold.
func (s *section) per(q *Queue) {
	const want = "caller, session, or {argument: NAME} for the value of an argument of the calls"
	s.inside("per", func(n *conffile.Node, key string) {
		if q.Per = Per(n.Text); n.Form != conffile.Text || q.Per != PerCaller && q.Per != PerSession {
			q.Per = ""
			s.wrong(n, key, want, false)
		}
	}, func(in *section) {
		in.text(&q.Argument, argumentName, "argument")
		if q.Per = PerArgument; !in.has("argument") {
			in.problem(in.line, in.key, "want "+want)
		}
	})
}

var argumentName = rule{want: "the name of an argument, of 1 to 64 characters", ok: func(s string) bool { return s != "" && len(s) <= 64 }}

// queueOf reads which queue the tools of an entry are bound to.
func (s *section) queueOf(to *string) {
	*to = toolqueue.Default
	s.text(to, queueName, "queue")
	line := s.line
	if pair, ok := s.given("queue"); ok {
		line = pair.Line
	}
	s.refer(line, s.key+".queue", *to)
}

// queuesOf reads the queues of individual tools.
func (s *section) queuesOf(to *map[string]string) {
	s.table(to, toolName, queueName, "toolQueues")
	if pair, ok := s.given("toolQueues"); ok {
		for _, p := range pair.Value.Pairs {
			if queue, ok := (*to)[p.Key]; ok {
				s.refer(p.Line, s.sub("toolQueues")+"."+shownName(p.Key), queue)
			}
		}
	}
}

func (s *section) refer(line int, key, queue string) {
	s.merge.refs = append(s.merge.refs, reference{where: s.where(line), key: key, queue: queue})
}
