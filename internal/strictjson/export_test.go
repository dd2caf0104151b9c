package strictjson

const MaxDepth = maxDepth

var HalfSurrogate = halfSurrogate
