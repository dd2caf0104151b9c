-- ARGV[1] gives its turn back.
local p = KEYS[1]
if redis.call('GET', p .. 'turn') == ARGV[1] then
  redis.call('DEL', p .. 'turn')
  redis.call('SPUBLISH', p .. 'moved', 'turn ' .. ARGV[1])
end
return 'OK'
