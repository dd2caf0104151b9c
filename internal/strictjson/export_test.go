package strictjson

// ParseBoth reads a text in one pass, and the long way.
func ParseBoth(data []byte) (plain any, ok bool, tree any, err error) {
	plain, ok = parsePlain(data)
	tree, err = parseAny(data)
	return plain, ok, tree, err
}
