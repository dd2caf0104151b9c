-- Whether batch ARGV[2] of writer ARGV[1] is stored. If it is not, it may still
-- be on its way, in the buffer of a connection that is broken on our side only.
-- So the moment moves on: should it come now, it is refused.
local p = KEYS[1]
if redis.call('GET', p .. 'writer:' .. ARGV[1]) == ARGV[2] then return 1 end
redis.call('HINCRBY', p .. 'head', 'moment', 1)
return 0
