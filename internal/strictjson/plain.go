package strictjson

import (
	"bytes"
	"encoding/json"
)

// parsePlain reads the JSON text that programs send all the time, such as
// heartbeats, in one pass: printable ASCII without escapes, whole numbers, no
// member twice, not nested too deep. Of anything else, also of what is wrong,
// it says false, and parseAny, which knows all of JSON and what to say of errors,
// begins anew.
func parsePlain(data []byte) (tree any, ok bool) {
	p := plain{data: data}
	tree, ok = p.value(1)
	p.space()
	return tree, ok && p.at == len(p.data)
}

// plain is a text and how far it has been read.
type plain struct {
	data []byte
	at   int
}

func (p *plain) space() {
	for p.at < len(p.data) && (p.data[p.at] == ' ' || p.data[p.at] == '\n' || p.data[p.at] == '\t' || p.data[p.at] == '\r') {
		p.at++
	}
}

// next steps over c, and the space before it, if it is what comes next.
func (p *plain) next(c byte) bool {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *plain) value(depth int) (any, bool) {
	p.space()
	if p.at == len(p.data) {
		return nil, false
	}
	switch c := p.data[p.at]; {
	case c == '"':
		return p.text()
	case c == '{' && depth <= maxDepth:
		return p.object(depth)
	case c == '[' && depth <= maxDepth:
		return p.array(depth)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	return p.word()
}

// words are the values that have names.
var words = []struct {
	text  string
	value any
}{{"true", true}, {"false", false}, {"null", nil}}

func (p *plain) word() (any, bool) {
	for _, w := range words {
		if bytes.HasPrefix(p.data[p.at:], []byte(w.text)) {
			p.at += len(w.text)
			return w.value, true
		}
	}
	return nil, false
}

func (p *plain) number() (any, bool) {
	from := p.at
	if p.data[p.at] == '-' {
		p.at++
	}
	first := p.at
	for p.at < len(p.data) && '0' <= p.data[p.at] && p.data[p.at] <= '9' {
		p.at++
	}
	digits := p.data[first:p.at]
	if len(digits) == 0 || (digits[0] == '0' && len(digits) > 1) {
		return nil, false
	}
	// A fraction or an exponent is left over, which nothing takes.
	return json.Number(p.data[from:p.at]), true
}

func (p *plain) text() (any, bool) {
	s, ok := p.string()
	return s, ok
}

func (p *plain) string() (string, bool) {
	if !p.next('"') {
		return "", false
	}
	for from := p.at; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			return string(p.data[from : p.at-1]), true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}

func (p *plain) array(depth int) (any, bool) {
	p.at++
	list := []any{}
	if p.next(']') {
		return list, true
	}
	for {
		v, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if p.next(']') {
			return list, true
		}
		if !p.next(',') {
			return nil, false
		}
	}
}

func (p *plain) object(depth int) (any, bool) {
	p.at++
	o := &Object{Values: map[string]any{}}
	if p.next('}') {
		return o, true
	}
	for {
		key, ok := p.string()
		if _, twice := o.Values[key]; !ok || twice || !p.next(':') {
			return nil, false
		}
		v, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		o.Keys = append(o.Keys, key)
		o.Values[key] = v
		if p.next('}') {
			return o, true
		}
		if !p.next(',') {
			return nil, false
		}
	}
}
