package redis

import (
	_ "embed" // the scripts
	"strings"

	"github.com/redis/rueidis"
)

var (
	//go:embed lua/commit.lua
	commitLua string
	//go:embed lua/read.lua
	readLua string
	//go:embed lua/turn.lua
	turnLua string
	//go:embed lua/unlock.lua
	unlockLua string
	//go:embed lua/trial.lua
	trialLua string
	//go:embed lua/settle.lua
	settleLua string
)

// The first line has the server look before a script runs whether it may run:
// one that writes is refused as a whole where the server is a replica, or
// cannot write its file. Where its memory is full only batches with new tasks
// are: what there is goes on, ends, and makes room.
const (
	grows  = "#!lua\n"
	writes = "#!lua flags=allow-oom\n"
	reads  = "#!lua flags=no-writes\n"
)

// The scripts. They are sent by their sum, and whole to a server that has
// forgotten them.
var (
	submitScript = rueidis.NewLuaScript(grows + commitLua) // commitScript for a batch with new tasks
	commitScript = rueidis.NewLuaScript(writes + commitLua)
	readScript   = rueidis.NewLuaScriptReadOnly(reads + questionsFrom("1"))
	lockScript   = rueidis.NewLuaScript(writes + turnLua + questionsFrom("2"))
	unlockScript = rueidis.NewLuaScript(writes + unlockLua)
	settleScript = rueidis.NewLuaScript(writes + settleLua)
	trialScript  = rueidis.NewLuaScript(writes + trialLua)
)

// questionsFrom is the reading script whose questions begin at that argument.
func questionsFrom(first string) string { return strings.Replace(readLua, "FIRST", first, 1) }
