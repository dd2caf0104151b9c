package identity

// Age makes what is known old enough to be looked at anew.
func (k *Keeper) Age() {
	k.looks.tried.Add(-int64(RefreshEvery))
	k.looks.good.Add(-int64(RefreshEvery))
}

// AddrFailures and UserFailures are the limits of the back-off.
const (
	AddrFailures = addrFailures
	UserFailures = userFailures
	BlockedFor   = blockedFor
	MaxHashes    = maxHashes
	MaxLogins    = maxLogins
)

// Hashing says how many hashes are being made.
func (k *Keeper) Hashing() int { return len(k.hashing) }

// ParsePHC reads a stored password.
func ParsePHC(s string) error { _, _, _, err := parsePHC(s); return err }
