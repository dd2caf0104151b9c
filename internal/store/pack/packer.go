package pack

import (
	"encoding/binary"
	"math"
	"time"
)

// Packer encodes values in sequence.
type Packer struct{ b []byte }

// New starts a Packer with the given capacity in bytes.
func New(size int) Packer { return Packer{append(make([]byte, 0, size), firstVersion)} }

// Append starts a Packer that appends to b.
func Append(b []byte) Packer { return Packer{append(b, firstVersion)} }

// Packed returns the encoded bytes.
func (p *Packer) Packed() []byte { return p.b }

// Int packs a number.
func (p *Packer) Int(v int64) { p.b = binary.AppendVarint(p.b, v) }

// Ints packs numbers.
func (p *Packer) Ints(list ...int64) {
	for _, v := range list {
		p.Int(v)
	}
}

// Bool packs a bool.
func (p *Packer) Bool(v bool) {
	p.b = append(p.b, 0)
	if v {
		p.b[len(p.b)-1] = 1
	}
}

// Flags packs up to eight bools into a byte.
func (p *Packer) Flags(list ...bool) {
	b := byte(0)
	for n, v := range list {
		if v {
			b |= 1 << n
		}
	}
	p.b = append(p.b, b)
}

// Float packs a float in eight bytes.
func (p *Packer) Float(v float64) { p.b = binary.BigEndian.AppendUint64(p.b, math.Float64bits(v)) }

// Texts packs strings of any bytes.
func (p *Packer) Texts(list ...string) {
	for _, s := range list {
		p.b = binary.AppendUvarint(p.b, uint64(len(s)))
		p.b = append(p.b, s...)
	}
}

// Bytes packs bytes, as Texts does a string.
func (p *Packer) Bytes(v []byte) {
	p.b = binary.AppendUvarint(p.b, uint64(len(v)))
	p.b = append(p.b, v...)
}

// Times packs times to the millisecond; the zero time is distinct.
func (p *Packer) Times(list ...time.Time) {
	for _, t := range list {
		p.Bool(!t.IsZero())
		if !t.IsZero() {
			p.Int(t.UnixMilli())
		}
	}
}

// Reader decodes what a Packer wrote; Bad reports invalid data.
type Reader struct {
	b   []byte
	Bad bool
}

// Read starts to decode what was packed after New.
func Read(body []byte) Reader {
	if len(body) == 0 {
		return Reader{Bad: true}
	}
	return Reader{b: body[1:], Bad: body[0] != firstVersion}
}

// Int decodes a number.
func (d *Reader) Int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.Bad, n = true, 0
	}
	d.b = d.b[n:]
	return v
}

// count decodes how many values follow, at most most.
func (d *Reader) count(most int) int {
	n := d.Int()
	if n < 0 || n > int64(most) {
		d.Bad, d.b = true, nil
		return 0
	}
	return int(n)
}

// More reports whether a value follows: rows of older versions end earlier.
func (d *Reader) More() bool { return len(d.b) > 0 }

// Bytes decodes a string that shares the bytes of the input.
func (d *Reader) Bytes() []byte {
	size, n := binary.Uvarint(d.b)
	if n <= 0 || size > uint64(len(d.b)-n) {
		d.Bad, d.b = true, nil
		return nil
	}
	v := d.b[n : n+int(size)]
	d.b = d.b[n+int(size):]
	return v
}

// Text decodes a string.
func (d *Reader) Text() string { return string(d.Bytes()) }

// Bool decodes a bool.
func (d *Reader) Bool() bool {
	if len(d.b) == 0 {
		d.Bad = true
		return false
	}
	v := d.b[0] != 0
	d.b = d.b[1:]
	return v
}

// Flags decodes what Packer.Flags packed.
func (d *Reader) Flags(list ...*bool) {
	if len(d.b) == 0 {
		d.Bad = true
		return
	}
	for n, v := range list {
		*v = d.b[0]&(1<<n) != 0
	}
	d.b = d.b[1:]
}

// Float decodes a float.
func (d *Reader) Float() float64 {
	if len(d.b) < 8 {
		d.Bad = true
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}

// Time decodes a time.
func (d *Reader) Time() time.Time {
	if !d.Bool() {
		return time.Time{}
	}
	return time.UnixMilli(d.Int()).UTC()
}

// list packs a list of strings; nil is distinct from empty.
func list[T ~string](p *Packer, values []T) {
	n := int64(len(values)) + 1
	if values == nil {
		n = 0
	}
	p.Int(n)
	for _, v := range values {
		p.Texts(string(v))
	}
}

func listOf[T ~string](d *Reader) []T {
	n := d.Int()
	if n <= 0 || n-1 > int64(len(d.b)) { // each value has at least one byte
		d.Bad = d.Bad || n != 0
		return nil
	}
	values := make([]T, 0, n-1)
	for range n - 1 {
		values = append(values, T(d.Text()))
	}
	return values
}
