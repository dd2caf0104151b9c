package sqlite

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox"
)

// packRequest packs a request without its prompt and environment; nil if
// nothing else is in it, as for most.
func packRequest(r *signalbox.Request) []byte {
	if r.Model == "" && r.Tier == "" && r.TimeoutSeconds == 0 && r.Project == nil && r.Thinking == nil &&
		r.SessionID == "" && r.Queue == "" && !r.HadEnv && r.AllowedTools == nil && r.SystemPrompt == "" && !r.NewSession &&
		r.Arguments == nil && r.Metadata == nil && r.TimeoutMS == 0 && r.Trace == "" {
		return nil
	}
	p := packer{[]byte{packedVersion}}
	if r.AllowedTools != nil || r.SystemPrompt != "" || r.NewSession {
		p.b[0] = withTools
	}
	if r.Arguments != nil || r.Metadata != nil || r.TimeoutMS != 0 {
		p.b[0] = withCall
	}
	if r.Trace != "" {
		p.b[0] = withTrace
	}
	p.texts(r.Model, r.Tier, r.SessionID, r.Queue)
	p.int(int64(r.TimeoutSeconds))
	p.bool(r.HadEnv)
	p.bool(r.Project != nil)
	if r.Project != nil {
		p.texts(r.Project.Name, r.Project.Path)
	}
	p.bool(r.Thinking != nil)
	if r.Thinking != nil {
		p.bool(*r.Thinking)
	}
	if p.b[0] >= withTools {
		list(&p, r.AllowedTools)
		p.texts(r.SystemPrompt)
		p.bool(r.NewSession)
	}
	if p.b[0] >= withCall {
		p.texts(string(r.Arguments), string(r.Metadata))
		p.int(r.TimeoutMS)
	}
	if p.b[0] >= withTrace {
		p.texts(r.Trace)
	}
	return p.b
}

func unpackRequest(prompt string, rest, sealed []byte) (signalbox.Request, error) {
	r := signalbox.Request{Prompt: prompt, SealedEnv: sealed}
	if len(rest) == 0 {
		return r, nil
	}
	d := decoder{b: rest[1:], bad: rest[0] < packedVersion || rest[0] > withTrace}
	r.Model, r.Tier, r.SessionID, r.Queue = d.text(), d.text(), d.text(), d.text()
	r.TimeoutSeconds = int(d.int())
	r.HadEnv = d.bool()
	if d.bool() {
		r.Project = &signalbox.Project{Name: d.text(), Path: d.text()}
	}
	if d.bool() {
		thinking := d.bool()
		r.Thinking = &thinking
	}
	if rest[0] >= withTools {
		r.AllowedTools, r.SystemPrompt = listOf[string](&d), d.text()
		r.NewSession = d.bool()
	}
	if rest[0] >= withCall {
		r.Arguments, r.Metadata = rawOf(d.text()), rawOf(d.text())
		r.TimeoutMS = d.int()
	}
	if rest[0] >= withTrace {
		r.Trace = d.text()
	}
	if d.bad {
		return r, damaged("request")
	}
	return r, nil
}

// packResult packs a result without its texts; nil if nothing else is in it.
func packResult(r *signalbox.Result) []byte {
	short := *r
	short.Output, short.Tail = "", ""
	if short == (signalbox.Result{}) {
		return nil
	}
	p := packer{[]byte{packedVersion}}
	p.int(r.TailSeq)
	p.bool(r.Truncated)
	p.bool(r.ExitCode != nil)
	if r.ExitCode != nil {
		p.int(int64(*r.ExitCode))
	}
	p.int(r.InputTokens)
	p.int(r.OutputTokens)
	p.float(r.CostUSD)
	p.float(r.DurationSeconds)
	p.texts(r.ErrorType)
	if r.ToolCount != 0 || r.Answer != "" { // rows of before have none
		p.int(r.ToolCount)
	}
	if r.Answer != "" { // likewise
		p.texts(r.Answer)
	}
	return p.b
}

func unpackResult(output, tail string, rest []byte) (signalbox.Result, error) {
	r := signalbox.Result{Output: output, Tail: tail}
	if len(rest) == 0 {
		return r, nil
	}
	d := decoder{b: rest[1:], bad: rest[0] != packedVersion}
	r.TailSeq = d.int()
	r.Truncated = d.bool()
	if d.bool() {
		code := int(d.int())
		r.ExitCode = &code
	}
	r.InputTokens, r.OutputTokens = d.int(), d.int()
	r.CostUSD, r.DurationSeconds = d.float(), d.float()
	r.ErrorType = d.text()
	if len(d.b) > 0 {
		r.ToolCount = d.int()
	}
	if len(d.b) > 0 {
		r.Answer = d.text()
	}
	if d.bad {
		return r, damaged("result")
	}
	return r, nil
}

// rawOf tells no JSON from an empty text.
func rawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func damaged(what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the %s of the task cannot be read: its row is damaged", what)
}
