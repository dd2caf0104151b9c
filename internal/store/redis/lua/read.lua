-- What all reads are made of. ARGV is a list of questions, each a name, how
-- many arguments it has, and these; the answers come in the same order, all of
-- one moment.
local p, a, call, sub = KEYS[1], ARGV, redis.call, string.sub
local PIECE = 7000 -- Lua hands at most 8,000 values to a function

-- fetch returns the values of fields.
local function fetch(hash, fields)
  local n = #fields
  if n == 0 then return {} end
  if n <= PIECE then return call('HMGET', hash, unpack(fields)) end
  local all = {}
  for i = 1, n, PIECE do
    local part = call('HMGET', hash, unpack(fields, i, math.min(i + PIECE - 1, n)))
    for j = 1, #part do all[i + j - 1] = part[j] end
  end
  return all
end

-- cut returns what members have from a place on.
local function cut(members, from)
  for j = 1, #members do members[j] = sub(members[j], from) end
  return members
end

local ask = {}

-- head: a writer. The counters, and the number of its last batch.
function ask.head(i, n)
  local h = call('HMGET', p .. 'head', 'moment', 'rest', 'id', 'cut')
  h[5] = call('GET', p .. 'writer:' .. a[i])
  return h
end

-- get: a hash and fields.
function ask.get(i, n)
  local fields = {}
  for j = 1, n - 1 do fields[j] = a[i + j] end
  return fetch(p .. a[i], fields)
end

-- keyed: idempotency keys. The rows of their tasks.
function ask.keyed(i, n)
  local rows = {}
  for j = 1, n do
    local id = call('HGET', p .. 'keys', a[i + j - 1])
    rows[j] = id and call('HGET', p .. 'tasks', id) or false
  end
  return rows
end

-- of: a hash, where in a member its field begins, then a command that lists
-- members, its key and its other arguments.
function ask.of(i, n)
  return fetch(p .. a[i], cut(call(a[i + 2], p .. a[i + 3], unpack(a, i + 4, i + n - 1)), tonumber(a[i + 1])))
end

-- logs: how the log begins whose batch began at a moment. That log and all
-- behind it; none if it is not kept.
function ask.logs(i, n)
  local back = {}
  repeat
    local log = call('LINDEX', p .. 'logs', -#back - 1)
    if not log then return {} end
    back[#back + 1] = log
  until sub(log, 1, 8) == a[i]
  local out = {}
  for j = #back, 1, -1 do out[#out + 1] = back[j] end
  return out
end

-- call: a command, its key, and its other arguments.
function ask.call(i, n)
  return call(a[i], p .. a[i + 1], unpack(a, i + 2, i + n - 1))
end

-- time: that of the server, as seconds and microseconds.
function ask.time() return call('TIME') end

-- whole: the kind of docs that are named by the Seq of a task, and a task's id.
-- Its row, request, sealed environment and result, and its doc.
function ask.whole(i, n)
  local row = call('HGET', p .. 'tasks', a[i + 1])
  if not row then return { false, false, false, false, false } end
  -- Seq is above zero, and so 128 leads the other seven bytes.
  local seq, decimal = sub(row, 1, 8), 0
  for j = 2, 8 do decimal = decimal * 256 + string.byte(seq, j) end
  return { row, call('HGET', p .. 'requests', seq), call('HGET', p .. 'sealed', seq), call('HGET', p .. 'results', seq),
    call('HGET', p .. 'docs:' .. a[i], string.format('%.0f', decimal)) }
end

-- before: a task's id. Its row, and how many stand before it in its queue; -1
-- where it does not wait.
function ask.before(i, n)
  local row = call('HGET', p .. 'tasks', a[i])
  if not row then return { false, -1 } end
  local high, low = string.byte(row, 9, 10)
  local size = high * 256 + low - 1
  if size < 0 then return { row, -1 } end
  local bound, queue = '(' .. sub(row, 11, 26), sub(row, 27, 26 + size)
  return { row, call('ZLEXCOUNT', p .. 'ready:' .. queue, '-', bound) + call('ZLEXCOUNT', p .. 'held:' .. queue, '-', bound) }
end

-- heads: how many. For each queue its name, and the first of its tasks that
-- are ready, and of those that are not.
function ask.heads(i, n)
  local out, last = {}, tonumber(a[i]) - 1
  for _, queue in ipairs(call('HKEYS', p .. 'queues')) do
    out[#out + 1] = queue
    for _, line in ipairs({ 'ready:', 'held:' }) do
      out[#out + 1] = fetch(p .. 'tasks', cut(call('ZRANGE', p .. line .. queue, 0, last), 17))
    end
  end
  return out
end

-- find: a part of an id. Ids of tasks that begin or end with it, and the first
-- bytes of their rows, their Seq.
function ask.find(i, n)
  local part, ids, known = a[i], {}, {}
  local function add(id)
    if not known[id] then
      known[id] = true
      ids[#ids + 1] = id
    end
  end
  for _, id in ipairs(call('ZREVRANGEBYLEX', p .. 'ids', '[' .. part .. '\255', '[' .. part, 'LIMIT', '0', '1000')) do add(id) end
  local born = part ~= '' and call('LRANGE', p .. 'recent', '0', '-1') or {}
  local left = 10000
  for j = #born, 1, -1 do
    local of = {}
    for id in string.gmatch(born[j], '\n([^\n]*)') do of[#of + 1] = id end
    for k = #of, math.max(1, #of - left + 1), -1 do
      if #ids < 2000 and sub(of[k], -#part) == part then add(of[k]) end
    end
    left = left - #of
  end
  local rows = fetch(p .. 'tasks', ids)
  for j = 1, #ids do rows[j] = sub(rows[j] or '', 1, 8) end
  return { ids, rows }
end

-- beginning: a time. Up to which Seq the journal is older, from its beginning;
-- and the record after it, of which a part may be.
function ask.beginning(i, n)
  local older, from, through, bytes = tonumber(a[i]), '-', '', 0
  repeat
    local list = call('XRANGE', p .. 'journal', from, '+', 'COUNT', '20')
    for j = 1, #list do
      local f = list[j][2] -- first, its Seq; newest, its newest time; writer; entries
      if tonumber(f[4]) >= older then return { through, f[2], f[8] } end
      through, bytes = list[j][1], bytes + #f[8]
    end
    from = '(' .. through
  until #list < 20 or bytes > 4000000
  return { through }
end

local out = {}
local i = FIRST
while i <= #a do
  local n = tonumber(a[i + 1])
  out[#out + 1] = ask[a[i]](i + 2, n)
  i = i + 2 + n
end
return out
