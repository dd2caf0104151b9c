package postgres

import (
	"context"
	"fmt"
)

// stuck are the sessions of processes like this one that have the store's lock,
// and wait for their client in the middle of what it says. The server's own
// bounds do not count that as idle: such a client (its machine stands still, or
// the network went in between) would have the lock for as long as it likes.
// Those that wait for a standby, or work, are not among them.
const stuck = `SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid, 2000)) FROM pg_stat_activity a
	WHERE a.pid <> pg_backend_pid() AND a.datname = current_database() AND a.usename = current_user
		AND a.application_name = current_setting('application_name') AND a.wait_event IN ('ClientRead', 'ClientWrite')
		AND a.state <> 'idle' AND a.state_change < clock_timestamp() - interval '%d milliseconds'
		AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.relation IN ('meta'::regclass, 'turn'::regclass, 'storing'::regclass)
			AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock'))`

// unblock ends what stands still with the store's lock, after err said that
// the lock could not be had in time. It reports whether that may be had now.
func (g *Backend) unblock(ctx context.Context, err error) bool {
	if refused, said := isServer(err); !said || refused.Code != codeLockTimeout {
		return false
	}
	conn, err := g.params.dial(ctx, nil)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(ctx) }()
	got, err := query(ctx, conn, fmt.Sprintf(stuck, g.params.limit.still.Milliseconds()))
	if err != nil || got[0] == "0" {
		return false
	}
	g.log.Warn("a process that stood still had the lock of the store: its session was ended", "sessions", got[0])
	return true
}
