-- The one script that writes a batch. It knows no rule: what is to be written
-- was decided by the program, which sends it as commands. They are run only if
-- nothing has changed since the program looked.
--
-- ARGV: writer, number of its batch, moment it began at, moment it leads to,
-- the other counters, the store's id; how many listen who need no sign of it.
-- Then, led by how many arguments that are, a score and the id of each new task;
-- likewise the idempotency key and the id of each that has one; then commands,
-- each led by its length. What is new must not be known already.
local p, a, call = KEYS[1], ARGV, redis.call
local writer, number, from, to = a[1], a[2], a[3], a[4]
local head, turn, last = p .. 'head', p .. 'turn', p .. 'writer:' .. writer

-- The answer to this batch was lost, and it came again.
if call('GET', last) == number then return 'OK' end
if (call('HGET', head, 'moment') or '0') ~= from then return 'MOVED' end
-- Who waits its turn is not passed by.
local held = call('GET', turn)
if held and held ~= writer then return 'MOVED' end

-- Lua hands at most 8,000 values to a function.
local PIECE = 7000

-- pieces calls f with from where to where the n arguments from a[i] on make a
-- piece.
local function pieces(i, n, f)
  for at = i, i + n - 1, PIECE do f(at, math.min(at + PIECE, i + n) - 1) end
end

-- seconds lists every second argument of a piece.
local function seconds(from, to)
  local list = {}
  for at = from, to, 2 do list[#list + 1] = a[at] end
  return list
end

-- Keys are looked up before anything is written; ids need not be: that fewer
-- were added tells that one was known, and then the others go again.
local ids, new, keys, named = 9, tonumber(a[8]), 10 + a[8], tonumber(a[9 + a[8]])
local known, added = false, 0
pieces(keys, named, function(from, to)
  for _, id in ipairs(call('HMGET', p .. 'keys', unpack(seconds(from, to)))) do known = known or id end
end)
if known then return 'TAKEN' end
pieces(ids, new, function(from, to) added = added + call('ZADD', p .. 'ids', 'NX', unpack(a, from, to)) end)
if added * 2 ~= new then
  pieces(ids, new, function(from, to)
    local list = seconds(from + 1, to)
    for j, row in ipairs(call('HMGET', p .. 'tasks', unpack(list))) do
      if not row then call('ZREM', p .. 'ids', list[j]) end
    end
  end)
  return 'TAKEN'
end
pieces(keys, named, function(from, to) call('HSET', p .. 'keys', unpack(a, from, to)) end)

-- What no command of the server does by itself. Each gets the place of its
-- arguments: from i up to last.
local more = {}

-- count: a hash, then fields and by how much they grow. One that comes to 0 goes.
function more.count(i, last)
  for at = i + 1, last, 2 do
    if call('HINCRBY', a[i], a[at], a[at + 1]) == 0 then call('HDEL', a[i], a[at]) end
  end
end

-- docs: a kind, then id, sort (8 bytes) and row; without a row it goes.
function more.docs(i, last)
  local rows, byID, bySort = p .. 'docs:' .. a[i], p .. 'docs.id:' .. a[i], p .. 'docs.sort:' .. a[i]
  for at = i + 1, last, 3 do
    local id, sort, row = a[at], a[at + 1], a[at + 2]
    local old = call('HGET', rows, id)
    local was = old and string.sub(old, 1, 8)
    if was and (row == '' or was ~= sort) then call('ZREM', bySort, was .. id) end
    if row ~= '' then
      call('HSET', rows, id, row)
      if not was then call('ZADD', byID, '0', id) end
      if was ~= sort then call('ZADD', bySort, '0', sort .. id) end
    elseif was then
      call('HDEL', rows, id)
      call('ZREM', byID, id)
    end
  end
end

-- recent: how many ids, and these, each behind a line break. They are kept with
-- how many there were ever, so that the newest 10,000 stay, and a few more.
function more.recent(i, last)
  local key = a[i]
  local newest = call('LINDEX', key, '-1')
  local ever = a[i + 1] + (newest and string.match(newest, '^%d+') or 0)
  call('RPUSH', key, string.format('%d', ever) .. a[i + 2])
  while string.match(call('LINDEX', key, '0'), '^%d+') + 10000 <= ever do call('LPOP', key) end
end

local i = keys + named
while i <= #a do
  local n, name = tonumber(a[i]), a[i + 1]
  if more[name] then
    more[name](i + 2, i + n)
  else
    call(unpack(a, i + 1, i + n))
  end
  i = i + n + 1
end

-- Last, so that a batch that broke off is done again.
call('HSET', head, 'moment', to, 'rest', a[5], 'id', a[6])
-- A month: nobody asks for a writer that is gone.
call('SET', last, number, 'EX', '2592000')
if held then call('DEL', turn) end
local moved = p .. 'moved'
if call('PUBSUB', 'SHARDNUMSUB', moved)[2] > tonumber(a[7]) then call('SPUBLISH', moved, 'batch ' .. writer) end
return 'OK'
