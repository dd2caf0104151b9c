package pack

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Request packs a request without its prompt and environment; nil if it has nothing else, like most.
func Request(r *signalbox.Request) []byte {
	if r.Model == "" && r.Tier == "" && r.TimeoutSeconds == 0 && r.Project == nil && r.Thinking == nil &&
		r.SessionID == "" && r.Queue == "" && !r.HadEnv && r.AllowedTools == nil && r.SystemPrompt == "" && !r.NewSession &&
		r.Arguments == nil && r.Metadata == nil && r.TimeoutMS == 0 && r.Trace == "" && r.EnvBy == "" && r.Checking.IsZero() && r.Workspace == nil && r.Land == nil {
		return nil
	}
	p := New(64)
	if r.AllowedTools != nil || r.SystemPrompt != "" || r.NewSession {
		p.b[0] = withTools
	}
	if r.Arguments != nil || r.Metadata != nil || r.TimeoutMS != 0 {
		p.b[0] = withCall
	}
	if r.Trace != "" {
		p.b[0] = withTrace
	}
	if r.EnvBy != "" {
		p.b[0] = withEnvBy
	}
	if !r.Checking.IsZero() {
		p.b[0] = withChecks
	}
	if r.Workspace != nil {
		p.b[0] = withWorkspace
	}
	if r.Land != nil {
		p.b[0] = withLand
	}
	p.Texts(r.Model, r.Tier, r.SessionID, r.Queue)
	p.Int(int64(r.TimeoutSeconds))
	p.Bool(r.HadEnv)
	p.Bool(r.Project != nil)
	if r.Project != nil {
		p.Texts(r.Project.Name, r.Project.Path)
	}
	p.Bool(r.Thinking != nil)
	if r.Thinking != nil {
		p.Bool(*r.Thinking)
	}
	if p.b[0] >= withTools {
		list(&p, r.AllowedTools)
		p.Texts(r.SystemPrompt)
		p.Bool(r.NewSession)
	}
	if p.b[0] >= withCall {
		p.Texts(string(r.Arguments), string(r.Metadata))
		p.Int(r.TimeoutMS)
	}
	if p.b[0] >= withTrace {
		p.Texts(r.Trace)
	}
	if p.b[0] >= withEnvBy {
		p.Texts(string(r.EnvBy))
	}
	if p.b[0] >= withChecks {
		checking(&p, r.Checking)
	}
	if p.b[0] >= withWorkspace {
		workspace(&p, r.Workspace)
	}
	if p.b[0] >= withLand {
		wish(&p, r.Land.LandWish)
		p.Texts(r.Land.Task, r.Land.SessionID, r.Land.Title)
	}
	return p.b
}

// ReadRequest decodes what Request packed, for a task with that prompt and environment.
func ReadRequest(prompt string, rest, sealed []byte) (signalbox.Request, error) {
	r := signalbox.Request{Prompt: prompt, SealedEnv: sealed}
	if len(rest) == 0 {
		return r, nil
	}
	d := Reader{b: rest[1:], Bad: rest[0] < firstVersion || rest[0] > withLand}
	r.Model, r.Tier, r.SessionID, r.Queue = d.Text(), d.Text(), d.Text(), d.Text()
	r.TimeoutSeconds = int(d.Int())
	r.HadEnv = d.Bool()
	if d.Bool() {
		r.Project = &signalbox.Project{Name: d.Text(), Path: d.Text()}
	}
	if d.Bool() {
		thinking := d.Bool()
		r.Thinking = &thinking
	}
	if rest[0] >= withTools {
		r.AllowedTools, r.SystemPrompt = listOf[string](&d), d.Text()
		r.NewSession = d.Bool()
	}
	if rest[0] >= withCall {
		r.Arguments, r.Metadata = rawOf(d.Text()), rawOf(d.Text())
		r.TimeoutMS = d.Int()
	}
	if rest[0] >= withTrace {
		r.Trace = d.Text()
	}
	if rest[0] >= withEnvBy {
		r.EnvBy = signalbox.EnvBy(d.Text())
	}
	if rest[0] >= withChecks {
		r.Checking = checkingOf(&d)
	}
	if rest[0] >= withWorkspace {
		r.Workspace = workspaceOf(&d)
	}
	if rest[0] >= withLand {
		r.Land = &signalbox.Land{LandWish: wishOf(&d), Task: d.Text(), SessionID: d.Text(), Title: d.Text()}
	}
	if d.Bad {
		return r, damaged("request")
	}
	return r, nil
}

func checking(p *Packer, c signalbox.Checking) {
	p.Bool(c.Retries != nil)
	if c.Retries != nil {
		p.Int(int64(*c.Retries))
	}
	p.Int(int64(len(c.Checks)))
	for _, one := range c.Checks {
		p.Texts(one.Name, one.Run)
		p.Int(int64(one.TimeoutSeconds))
	}
}

func checkingOf(d *Reader) signalbox.Checking {
	var c signalbox.Checking
	if d.Bool() {
		n := int(d.Int())
		c.Retries = &n
	}
	for range d.count(signalbox.MaxChecks) {
		c.Checks = append(c.Checks, signalbox.Check{Name: d.Text(), Run: d.Text(), TimeoutSeconds: int(d.Int())})
	}
	return c
}

func workspace(p *Packer, w *signalbox.Workspace) {
	said := w.Said()
	p.Texts(said.Kind, said.Repo, said.Base)
}

func workspaceOf(d *Reader) *signalbox.Workspace {
	return signalbox.NewWorkspace(d.Text(), d.Text(), d.Text())
}

// Result packs a result without its texts; nil if it has nothing else.
func Result(r *signalbox.Result) []byte {
	course := r.LogTimes != nil || r.Calls != nil || r.Model != "" || r.TailLine != 0 || r.Changes != nil || r.Checked != nil || r.Landed != nil
	if r.TailSeq == 0 && !r.Truncated && r.ExitCode == nil && r.InputTokens == 0 && r.OutputTokens == 0 && r.CostUSD == 0 &&
		r.DurationSeconds == 0 && r.ErrorType == "" && r.ToolCount == 0 && r.Answer == "" && !course {
		return nil
	}
	p := New(64)
	p.Int(r.TailSeq)
	p.Bool(r.Truncated)
	p.Bool(r.ExitCode != nil)
	if r.ExitCode != nil {
		p.Int(int64(*r.ExitCode))
	}
	p.Int(r.InputTokens)
	p.Int(r.OutputTokens)
	p.Float(r.CostUSD)
	p.Float(r.DurationSeconds)
	p.Texts(r.ErrorType)
	if r.ToolCount != 0 || r.Answer != "" || course { // older rows have none
		p.Int(r.ToolCount)
	}
	if r.Answer != "" || course { // likewise
		p.Texts(r.Answer)
	}
	if course { // likewise
		logTimes(&p, r.LogTimes)
		calls(&p, r.Calls)
	}
	landed := r.Landed != nil || r.Changes != nil && r.Changes.BaseBranch != ""
	judged := r.Checked != nil || landed
	if r.Model != "" || r.TailLine != 0 || r.Changes != nil || judged { // likewise
		p.Texts(r.Model)
	}
	if r.TailLine != 0 || r.Changes != nil || judged {
		p.Int(r.TailLine)
	}
	if r.Changes != nil || judged {
		changes(&p, cmp.Or(r.Changes, &signalbox.Changes{}))
	}
	if judged { // in older rows changes are last
		p.Bool(r.Changes != nil)
		checked(&p, cmp.Or(r.Checked, &signalbox.Checked{}))
	}
	if landed {
		p.Bool(r.Checked != nil)
		p.Texts(cmp.Or(r.Changes, &signalbox.Changes{}).BaseBranch)
		p.Bool(r.Landed != nil)
		l := cmp.Or(r.Landed, &signalbox.Landed{})
		p.Texts(l.Onto, l.Commit, l.Was, l.Checked, l.URL)
		p.Int(int64(l.Commits))
	}
	return p.b
}

func changes(p *Packer, c *signalbox.Changes) {
	p.Texts(c.Workspace, c.Dir, c.Branch, c.Base, c.Head, c.Patch)
	p.Bool(c.Uncommitted)
	p.Ints(int64(c.Commits), int64(c.FilesChanged), c.Insertions, c.Deletions, c.PatchBytes, int64(len(c.Files)))
	for i := range c.Files {
		f := &c.Files[i]
		p.Texts(f.Path, f.From, string(f.Status))
		p.Ints(f.Insertions, f.Deletions)
		p.Bool(f.Binary)
	}
}

func changesOf(d *Reader) *signalbox.Changes {
	c := &signalbox.Changes{Workspace: d.Text(), Dir: d.Text(), Branch: d.Text(), Base: d.Text(), Head: d.Text(), Patch: d.Text(), Uncommitted: d.Bool()}
	c.Commits, c.FilesChanged = int(d.Int()), int(d.Int())
	c.Insertions, c.Deletions, c.PatchBytes = d.Int(), d.Int(), d.Int()
	for range d.count(signalbox.MaxChangedFiles) {
		c.Files = append(c.Files, signalbox.ChangedFile{
			Path: d.Text(), From: d.Text(), Status: signalbox.ChangeStatus(d.Text()), Insertions: d.Int(), Deletions: d.Int(), Binary: d.Bool(),
		})
	}
	return c
}

func checked(p *Packer, c *signalbox.Checked) {
	p.Texts(string(c.State), c.Message)
	p.Ints(int64(c.Rounds), int64(len(c.Results)))
	for i := range c.Results {
		r := &c.Results[i]
		p.Texts(r.Name, string(r.State), r.Output)
		p.Float(r.Seconds)
		p.Bool(r.ExitCode != nil)
		if r.ExitCode != nil {
			p.Int(int64(*r.ExitCode))
		}
	}
}

func checkedOf(d *Reader) *signalbox.Checked {
	c := &signalbox.Checked{State: signalbox.CheckState(d.Text()), Message: d.Text(), Rounds: int(d.Int())}
	for range d.count(signalbox.MaxChecks) {
		r := signalbox.CheckResult{Name: d.Text(), State: signalbox.CheckState(d.Text()), Output: d.Text(), Seconds: d.Float()}
		if d.Bool() {
			code := int(d.Int())
			r.ExitCode = &code
		}
		c.Results = append(c.Results, r)
	}
	return c
}

func landedOf(d *Reader, r *signalbox.Result) {
	if !d.Bool() {
		r.Checked = nil
	}
	if base := d.Text(); r.Changes != nil {
		r.Changes.BaseBranch = base
	}
	has := d.Bool()
	l := signalbox.Landed{Onto: d.Text(), Commit: d.Text(), Was: d.Text(), Checked: d.Text(), URL: d.Text(), Commits: int(d.Int())}
	if has {
		r.Landed = &l
	}
}

// logTimes packs each time as the difference from the previous one.
func logTimes(p *Packer, list []signalbox.LogTime) {
	p.Int(int64(len(list)))
	seq, ms := int64(0), int64(0)
	for _, l := range list {
		p.Ints(l.Seq-seq, l.At.UnixMilli()-ms)
		seq, ms = l.Seq, l.At.UnixMilli()
	}
}

func logTimesOf(d *Reader) []signalbox.LogTime {
	n := d.count(signalbox.MaxLogTimes)
	if n == 0 {
		return nil
	}
	list := make([]signalbox.LogTime, n)
	seq, ms := int64(0), int64(0)
	for i := range list {
		seq, ms = seq+d.Int(), ms+d.Int()
		list[i] = signalbox.LogTime{Seq: seq, At: time.UnixMilli(ms).UTC()}
	}
	return list
}

// calls packs tool calls, with times and durations in milliseconds.
func calls(p *Packer, list []signalbox.ToolCall) {
	p.Int(int64(len(list)))
	for _, c := range list {
		p.Texts(c.Tool, c.Queue, c.Outcome)
		p.Ints(c.At.UnixMilli(), c.Waited.Milliseconds(), c.Took.Milliseconds())
	}
}

func callsOf(d *Reader) []signalbox.ToolCall {
	n := d.count(signalbox.MaxToolCalls)
	if n == 0 {
		return nil
	}
	list := make([]signalbox.ToolCall, n)
	for i := range list {
		list[i] = signalbox.ToolCall{Tool: d.Text(), Queue: d.Text(), Outcome: d.Text(), At: time.UnixMilli(d.Int()).UTC(), Waited: msOf(d), Took: msOf(d)}
	}
	return list
}

func msOf(d *Reader) time.Duration { return time.Duration(d.Int()) * time.Millisecond }

// ReadResult decodes what Result packed, for a task with those texts.
func ReadResult(output, tail string, rest []byte) (signalbox.Result, error) {
	r := signalbox.Result{Output: output, Tail: tail}
	if len(rest) == 0 {
		return r, nil
	}
	d := Reader{b: rest[1:], Bad: rest[0] != firstVersion}
	r.TailSeq = d.Int()
	r.Truncated = d.Bool()
	if d.Bool() {
		code := int(d.Int())
		r.ExitCode = &code
	}
	r.InputTokens, r.OutputTokens = d.Int(), d.Int()
	r.CostUSD, r.DurationSeconds = d.Float(), d.Float()
	r.ErrorType = d.Text()
	if len(d.b) > 0 {
		r.ToolCount = d.Int()
	}
	if len(d.b) > 0 {
		r.Answer = d.Text()
	}
	if len(d.b) > 0 {
		r.LogTimes, r.Calls = logTimesOf(&d), callsOf(&d)
	}
	if len(d.b) > 0 {
		r.Model = d.Text()
	}
	if len(d.b) > 0 {
		r.TailLine = d.Int()
	}
	if d.More() {
		r.Changes = changesOf(&d)
	}
	if d.More() {
		if !d.Bool() {
			r.Changes = nil
		}
		r.Checked = checkedOf(&d)
	}
	if d.More() {
		landedOf(&d, &r)
	}
	if d.Bad {
		return r, damaged("result")
	}
	return r, nil
}

// rawOf returns nil for an empty text.
func rawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func damaged(what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the %s of the task cannot be read: its row is damaged", what)
}

// A request and a result are stored as one value each: a version, their length-prefixed texts, and the packed
// rest.
const largeVersion = 1

// RequestRow appends a whole request, except its sealed environment, to b.
func RequestRow(b []byte, r *signalbox.Request) []byte {
	return append(appendText(append(b, largeVersion), r.Prompt), Request(r)...)
}

// ReadRequestRow decodes what RequestRow appended, for a task with that environment.
func ReadRequestRow(b, sealed []byte) (*signalbox.Request, error) {
	texts, rest, ok := cutTexts(b, 1)
	if !ok {
		return nil, damaged("request")
	}
	r, err := ReadRequest(texts[0], rest, sealed)
	return &r, err
}

// ResultRow appends a whole result to b.
func ResultRow(b []byte, r *signalbox.Result) []byte {
	return append(appendText(appendText(append(b, largeVersion), r.Output), r.Tail), Result(r)...)
}

// ReadResultRow decodes what ResultRow appended.
func ReadResultRow(b []byte) (*signalbox.Result, error) {
	texts, rest, ok := cutTexts(b, 2)
	if !ok {
		return nil, damaged("result")
	}
	r, err := ReadResult(texts[0], texts[1], rest)
	return &r, err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cutTexts decodes the first n texts of a value.
func cutTexts(b []byte, n int) (texts []string, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != largeVersion {
		return nil, nil, false
	}
	b = b[1:]
	for range n {
		size, led := binary.Uvarint(b)
		if led <= 0 || size > uint64(len(b)-led) {
			return nil, nil, false
		}
		texts = append(texts, string(b[led:led+int(size)])) //nolint:gosec // at most len(b)
		b = b[led+int(size):]                               //nolint:gosec // likewise
	}
	return texts, append([]byte(nil), b...), true
}
