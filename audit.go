package signalbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"
)

// Audit is one row of the audit log: who did what to what, with which result
// (fields of the seed execution-queue). The rows form a hash chain: each holds
// the hash of the row before, so that changes and removals are detected.
type Audit struct {
	Seq       int64     `json:"seq"` // from 1, without gaps; set by the store
	At        time.Time `json:"at"`  // UTC, truncated to the millisecond
	EventType string    `json:"event_type"`
	Action    string    `json:"action"`
	Principal string    `json:"principal,omitempty"` // Principal.Key of the authenticated identity
	UserID    string    `json:"user_id,omitempty"`
	AgentName string    `json:"agent_name,omitempty"` // the agent concerned
	Resource  string    `json:"resource,omitempty"`
	Result    string    `json:"result"` // success, denied or failed
	IPAddress string    `json:"ip_address,omitempty"`
	UserAgent string    `json:"user_agent,omitempty"`
	Details   string    `json:"details,omitempty"` // JSON
	Severity  string    `json:"severity"`          // info, warning or critical
	Prev      string    `json:"prev"`              // hash of the previous row, AuditRoot for the first; set by the store
	Hash      string    `json:"hash"`              // Sum of this row; set by the store
}

// The values of Audit.Result.
const (
	AuditSuccess = "success"
	AuditDenied  = "denied"
	AuditFailed  = "failed"
)

// AuditWarning is the severity of a row that someone should look at.
const AuditWarning = "warning"

// AuditDetails returns the details of a row as JSON: strings, numbers, and lists of
// them.
func AuditDetails(v map[string]any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(data)
}

// AuditRoot is Audit.Prev of the first row of a chain: 64 zeros.
const AuditRoot = "0000000000000000000000000000000000000000000000000000000000000000"

// Sum returns the hash of the row: SHA-256, in hex, over all its fields except
// Hash, in their order, each prefixed with its length.
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

// CheckAudit returns an error if row is not the valid successor of prev, the last row
// that was found valid; a nil prev is the beginning of the chain.
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
