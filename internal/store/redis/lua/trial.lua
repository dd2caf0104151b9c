-- Whether the user may do all that the other scripts do. Nothing is left of it.
local p, refused = KEYS[1], nil

local function call(name, ...)
  local answer = redis.pcall(name, ...)
  if type(answer) == 'table' and answer.err and not refused then
    refused = redis.error_reply('NOPERM ' .. string.lower(name) .. ': ' .. answer.err)
  end
end

local hash, set, stream = p .. 'tasks', p .. 'ids', p .. 'journal'
call('HSET', hash, 'a', '1')
call('HINCRBY', hash, 'a', '1')
call('HGET', hash, 'a')
call('HMGET', hash, 'a')
call('HGETALL', hash)
call('HKEYS', hash)
call('HDEL', hash, 'a')
call('ZADD', set, 'NX', '0', 'a')
call('ZCARD', set)
call('ZLEXCOUNT', set, '-', '+')
call('ZRANGE', set, '0', '0')
call('ZREVRANGE', set, '0', '0')
call('ZRANGEBYLEX', set, '-', '+', 'LIMIT', '0', '1')
call('ZREVRANGEBYLEX', set, '+', '-', 'LIMIT', '0', '1')
call('ZREM', set, 'a')
call('RPUSH', p .. 'logs', 'a')
call('LTRIM', p .. 'logs', '-1', '-1')
call('LINDEX', p .. 'logs', '-1')
call('LRANGE', p .. 'logs', '0', '-1')
call('LPOP', p .. 'logs')
call('XADD', stream, '1', 'a', '1')
call('XREVRANGE', stream, '+', '-', 'COUNT', '1')
call('XTRIM', stream, 'MINID', '=', '2')
call('SET', p .. 'writer:a', '1', 'EX', '10')
call('GET', p .. 'writer:a')
call('PTTL', p .. 'writer:a')
call('TIME')
call('PUBSUB', 'SHARDNUMSUB', p .. 'moved')
call('SPUBLISH', p .. 'moved', 'trial')
call('DEL', hash, set, stream, p .. 'logs', p .. 'writer:a')
return refused or 'OK'
