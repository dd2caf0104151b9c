package pack

import "github.com/signalbox-ai/signalbox"

// Extra packs what ReadExtra reads, like older versions of the SQLite store; nil for most tasks.
func Extra(t *signalbox.Task) []byte {
	if t.Mode == "" && t.Owner == "" && t.OwnerEmail == "" && t.Depth == 0 && !t.Waits && t.QueuedAs == 0 && t.Tool == "" {
		return nil
	}
	p := Packer{make([]byte, 0, 16+len(t.Mode)+len(t.Owner)+len(t.OwnerEmail))}
	p.b = append(p.b, firstVersion)
	p.Texts(string(t.Mode), t.Owner, t.OwnerEmail)
	p.Int(int64(t.Depth))
	p.Bool(t.Waits)
	p.Int(int64(t.QueuedAs))
	if t.Tool != "" { // older rows have none
		p.Texts(t.Tool)
	}
	return p.b
}
