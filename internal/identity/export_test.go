package identity

// Age makes the view old enough to be read again.
func (k *Keeper) Age() {
	k.looks.tried.Add(-int64(RefreshEvery))
	k.looks.good.Add(-int64(RefreshEvery))
}

// AddrFailures and UserFailures are the limits of the backoff.
const (
	AddrFailures = addrFailures
	UserFailures = userFailures
	BlockedFor   = blockedFor
	MaxHashes    = maxHashes
	MaxLogins    = maxLogins
)

// Hashing returns the number of hashes in progress.
func (k *Keeper) Hashing() int { return len(k.hashing) }

// ParsePHC parses a stored password.
func ParsePHC(s string) error { _, _, _, err := parsePHC(s); return err }
