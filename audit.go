package signalbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"
)

// Audit is one row of the audit log: who did what to what, and how it went
// (fields of the seed execution-queue). The rows form a chain: each holds the
// hash of the one before, so that none can be changed or taken out unseen.
type Audit struct {
	Seq       int64     `json:"seq"` // from 1, without gaps; set by the store
	At        time.Time `json:"at"`  // UTC, cut to the millisecond
	EventType string    `json:"event_type"`
	Action    string    `json:"action"`
	Principal string    `json:"principal,omitempty"` // Principal.Key, from the identity that was shown
	UserID    string    `json:"user_id,omitempty"`
	AgentName string    `json:"agent_name,omitempty"` // the agent that it was done to
	Resource  string    `json:"resource,omitempty"`
	Result    string    `json:"result"` // success, denied or failed
	IPAddress string    `json:"ip_address,omitempty"`
	UserAgent string    `json:"user_agent,omitempty"`
	Details   string    `json:"details,omitempty"` // JSON
	Severity  string    `json:"severity"`          // info, warning or critical
	Prev      string    `json:"prev"`              // hash of the row before, AuditRoot for the first; set by the store
	Hash      string    `json:"hash"`              // Sum of this row; set by the store
}

// What Audit.Result can be.
const (
	AuditSuccess = "success"
	AuditDenied  = "denied"
	AuditFailed  = "failed"
)

// AuditWarning is the severity of a row that someone should look at.
const AuditWarning = "warning"

// AuditDetails are the details of a row, as JSON: strings, numbers, and lists of
// them.
func AuditDetails(v map[string]any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(data)
}

// AuditRoot is what the first row of a chain follows: 64 zeros.
const AuditRoot = "0000000000000000000000000000000000000000000000000000000000000000"

// Sum returns the hash of the row: SHA-256, in hex, over all its fields but
// Hash, in their order, each with its length before it.
func (a *Audit) Sum() string {
	h := sha256.New()
	number(h, a.Seq)
	number(h, a.At.UnixMilli())
	for _, s := range []string{
		a.EventType, a.Action, a.Principal, a.UserID, a.AgentName, a.Resource, a.Result,
		a.IPAddress, a.UserAgent, a.Details, a.Severity, a.Prev,
	} {
		number(h, int64(len(s)))
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // the bits are what counts
	h.Write(b[:])
}

// CheckAudit reports the first thing that is wrong with a row that follows
// prev, the last row that was found right; nil is the beginning of the chain.
func CheckAudit(prev, row *Audit) error {
	seq, hash := int64(0), AuditRoot
	if prev != nil {
		seq, hash = prev.Seq, prev.Hash
	}
	switch {
	case row.Seq != seq+1:
		return Errorf(CodeStoreCorrupt, "row %d follows row %d: %d rows are missing", row.Seq, seq, row.Seq-seq-1)
	case row.Prev != hash:
		return Errorf(CodeStoreCorrupt, "row %d does not follow row %d: the one before it was changed or replaced", row.Seq, seq)
	case row.Sum() != row.Hash:
		return Errorf(CodeStoreCorrupt, "row %d was changed: its hash is not that of its contents", row.Seq)
	}
	return nil
}
