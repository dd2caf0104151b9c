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

// The first line makes the server check whether the script may run. A script that writes is refused as a
// whole if the server is a replica or cannot write its file. If its memory is full, only batches with new
// tasks are refused: existing tasks continue and end, which frees memory.
const (
	grows  = "#!lua\n"
	writes = "#!lua flags=allow-oom\n"
	reads  = "#!lua flags=no-writes\n"
)

// The scripts. They are sent by their hash, and in full to a server that does not have them.
var (
	submitScript = rueidis.NewLuaScript(grows + commitLua) // commitScript for a batch with new tasks
	commitScript = rueidis.NewLuaScript(writes + commitLua)
	readScript   = rueidis.NewLuaScriptReadOnly(reads + questionsFrom("1"))
	lockScript   = rueidis.NewLuaScript(writes + turnLua + questionsFrom("2"))
	unlockScript = rueidis.NewLuaScript(writes + unlockLua)
	settleScript = rueidis.NewLuaScript(writes + settleLua)
	trialScript  = rueidis.NewLuaScript(writes + trialLua)
)

// questionsFrom returns the reading script with its questions from that argument on.
func questionsFrom(first string) string { return strings.Replace(readLua, "FIRST", first, 1) }
