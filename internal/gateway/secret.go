package gateway

// MinSecret is the length from which a provider hides a secret of its
// configuration in what callers read: hiding every "1" and "true" would hide
// what people need to read.
const MinSecret = 6
