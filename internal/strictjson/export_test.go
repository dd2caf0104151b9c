package strictjson

const MaxDepth = maxDepth
