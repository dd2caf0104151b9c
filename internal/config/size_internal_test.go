package config

import "testing"

func TestBytesOf(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0B": 0, "1": 1, "5000000": 5_000_000, "5 MB": 5_000_000, "1MiB": 1 << 20, "20GiB": 20 << 30, "1.5TB": 1_500_000_000_000, "1PB": 1e15, "3kB": 3000, "3KiB": 3072,
	} {
		if got, ok := bytesOf(text); !ok || got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1.5B", "GB", "1 gb", "1 G", "1e9", "0x10", "1MB ", "1  MB", "9999999999999999PB", "1,5GB", "99999999999999999999"} {
		if got, ok := bytesOf(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}
