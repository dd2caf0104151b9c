package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkWorktreeOf10000Files makes worktrees of a repository with 10,000 files of 1 KB in 100
// folders; removing them is not measured.
func BenchmarkWorktreeOf10000Files(b *testing.B) {
	r := newRepository(b)
	for n := range 10_000 {
		r.write(fmt.Sprintf("d%02d/f%d.txt", n%100, n), strings.Repeat("0123456789abcde\n", 64))
	}
	r.commit("many")
	repo := r.open()
	dir := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		at := filepath.Join(dir, fmt.Sprint(n))
		if _, err := repo.AddWorktree(b.Context(), at, fmt.Sprint(BranchPrefix, n), ""); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := os.Stat(filepath.Join(at, "d99", "f9999.txt")); err != nil {
			b.Fatal(err)
		}
		if err := repo.RemoveWorktree(b.Context(), at); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
