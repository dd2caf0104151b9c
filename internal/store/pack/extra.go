package pack

import (
	"github.com/signalbox-ai/signalbox"
)

// Extra packs what is fixed at submit and few tasks have; nil for the
// others.
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
	if t.Tool != "" { // rows of before have none
		p.Texts(t.Tool)
	}
	return p.b
}

// ReadExtra reads what Extra wrote into a task.
func ReadExtra(t *signalbox.Task, extra []byte) error {
	if len(extra) == 0 {
		return nil
	}
	d := Reader{b: extra[1:], Bad: extra[0] != firstVersion}
	t.Mode, t.Owner, t.OwnerEmail = signalbox.Mode(d.Text()), d.Text(), d.Text()
	t.Depth = int(d.Int())
	t.Waits = d.Bool()
	t.QueuedAs = int(d.Int())
	if len(d.b) > 0 {
		t.Tool = d.Text()
	}
	if d.Bad {
		return damaged("row")
	}
	return nil
}
