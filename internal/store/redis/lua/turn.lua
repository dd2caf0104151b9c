-- Before the questions of a batch that was refused: ARGV[1] takes its turn. It
-- is a courtesy and no promise: it runs out, and what decides is the moment.
do
  local turn = KEYS[1] .. 'turn'
  local held = redis.call('GET', turn)
  if held and held ~= ARGV[1] then return redis.call('PTTL', turn) end
  redis.call('SET', turn, ARGV[1], 'PX', '1000')
end
