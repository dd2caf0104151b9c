package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// formula writes the Homebrew formula of the archives.
func formula(g goods) ([]string, error) {
	systems := []struct{ os, on string }{{"darwin", "macos"}, {"linux", "linux"}}
	archs := map[string]string{"amd64": "intel", "arm64": "arm"}
	var sources strings.Builder
	for _, s := range systems {
		var of strings.Builder
		for _, b := range g.built {
			if b.os != s.os {
				continue
			}
			archive := archiveOf(g.release, b.target) + ".tar.gz"
			sum, err := sha(filepath.Join(g.out, archive))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&of, "    on_%s do\n      url \"%s/releases/download/v%s/%s\"\n      sha256 \"%s\"\n    end\n", archs[b.arch], homepage, g.version, archive, sum)
		}
		if of.Len() > 0 {
			fmt.Fprintf(&sources, "  on_%s do\n%s  end\n\n", s.on, of.String())
		}
	}
	path := filepath.Join(g.out, product+".rb")
	return []string{path}, publish(path, fmt.Appendf(nil, formulaText, homepage, g.version, sources.String()))
}

const formulaText = `class Signalbox < Formula
  desc "Durable queue in front of AI agents"
  homepage "%s"
  version "%s"
  license "Apache-2.0"

%s  def install
    bin.install "signalbox"
    bash_completion.install "completion/signalbox.bash" => "signalbox"
    fish_completion.install "completion/signalbox.fish"
    zsh_completion.install "completion/signalbox.zsh" => "_signalbox"
    man1.install Dir["man/*.1"]
    doc.install "THIRD_PARTY_LICENSES.txt", "docs"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/signalbox version")
  end
end
`
