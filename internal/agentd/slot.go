package agentd

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// The ledger is a ring of slots. A slot is as large as a page, so that a
// write which a power cut tears harms no other.
const (
	ledgerSlots = 256
	slotSize    = 4096
	slotHeader  = 24 // magic, checksum of what follows, sequence number, length of the entry, 4 spare
)

var (
	slotMagic  = []byte("sbl1")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// entry is one of: a run was accepted; a claim is taken no more; runs are
// forgotten, and that their records are gone means nothing; nothing, where an
// accept failed.
type entry struct {
	Accepted  *record  `json:"accepted,omitempty"`
	Void      *record  `json:"void,omitempty"`
	Forgotten []string `json:"forgotten,omitempty"`
}

// encodeSlot fills a whole slot.
func encodeSlot(seq int64, e entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(text) > slotSize-slotHeader {
		return nil, fmt.Errorf("an entry of %d bytes does not fit a ledger slot", len(text))
	}
	b := make([]byte, slotSize)
	copy(b, slotMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(seq))
	binary.LittleEndian.PutUint32(b[16:], uint32(len(text)))
	copy(b[slotHeader:], text)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b, nil
}

// decodeSlot reports false for a slot that was never used or is torn.
func decodeSlot(b []byte) (seq int64, e entry, ok bool) {
	if len(b) != slotSize || !bytes.HasPrefix(b, slotMagic) || binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return 0, e, false
	}
	seq = int64(binary.LittleEndian.Uint64(b[8:]))
	n := binary.LittleEndian.Uint32(b[16:])
	if seq < 1 || n > slotSize-slotHeader || json.Unmarshal(b[slotHeader:slotHeader+n], &e) != nil {
		return 0, e, false
	}
	return seq, e, true
}
