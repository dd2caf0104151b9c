package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// part is a third-party component of the program.
type part struct {
	name, version string
	url           string // package URL
	sum           string // SHA-256 of its tree, as in go.sum, in hex; "" if unknown
	licences      []string
	texts         []text
}

// text is a file with a licence or a notice.
type text struct{ name, body string }

// partsOf lists the components of the program: the modules, the standard library, and
// the scripts of the dashboard. A component without a licence is an error.
func partsOf(ctx context.Context, p place, info *buildinfo.BuildInfo) ([]part, error) {
	folders, err := folders(ctx, p, info)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, dep := range info.Deps {
		made, err := modulePart(dep, folders[dep.Path])
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	std, err := standard(ctx, info.GoVersion)
	if err != nil {
		return nil, err
	}
	scripts, err := scriptsOf(p.source)
	if err != nil {
		return nil, err
	}
	out = append(append(out, std), scripts...)
	slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.url, b.url) })
	return out, nil
}

// folders returns the folders of the modules.
func folders(ctx context.Context, p place, info *buildinfo.BuildInfo) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release is made of what go.mod requires", dep.Path)
		}
		args = append(args, dep.Path+"@"+dep.Version)
	}
	said, err := output(ctx, p.source, environment(targets[0], p.env), "go", args...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for in := json.NewDecoder(strings.NewReader(said)); ; {
		var m struct{ Path, Dir string }
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out[m.Path] = m.Dir
	}
}

func modulePart(m *debug.Module, dir string) (part, error) {
	made := part{name: m.Path, version: m.Version, url: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}
	if b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(b) == 32 {
		made.sum = hex.EncodeToString(b)
	}
	return made, made.read(dir)
}

func standard(ctx context.Context, version string) (part, error) {
	root, err := output(ctx, ".", os.Environ(), "go", "env", "GOROOT")
	if err != nil {
		return part{}, err
	}
	plain, _, _ := strings.Cut(strings.TrimPrefix(version, "go"), " ")
	made := part{name: "std", version: plain, url: "pkg:golang/std@" + plain}
	if err := made.read(root); err != nil { // some Go packages keep it elsewhere
		made.licences, made.texts = []string{"BSD-3-Clause"}, []text{{"LICENSE", "Copyright 2009 The Go Authors. BSD-3-Clause: https://go.dev/LICENSE"}}
	}
	return made, nil
}

// taken is a package in scripts/vendor-pages.sh, with the folder it goes to.
var taken = regexp.MustCompile(`(?m)^take (@?[\w./-]+)@([\w.-]+) \S+ ([\w-]+)`)

// scriptsOf lists the third-party modules of the dashboard.
func scriptsOf(source string) ([]part, error) {
	script, err := os.ReadFile(filepath.Join(source, "scripts", "vendor-pages.sh"))
	if err != nil {
		return nil, err
	}
	vendor := filepath.Join(source, "internal", "dashboard", "assets", "vendor")
	dirs, err := os.ReadDir(vendor)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, m := range taken.FindAllStringSubmatch(string(script), -1) {
		made := part{name: m[1], version: m[2], url: "pkg:npm/" + strings.Replace(m[1], "@", "%40", 1) + "@" + m[2]}
		if err := made.read(filepath.Join(vendor, m[3])); err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	if len(out) != len(dirs) {
		return nil, fmt.Errorf("%s has %d folders, and scripts/vendor-pages.sh names %d packages: want one for each", vendor, len(dirs), len(out))
	}
	return out, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

// read finds the licences of a part in its folder.
func (p *part) read(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) || strings.HasSuffix(strings.ToUpper(f.Name()), "LOGO") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		p.texts = append(p.texts, text{f.Name(), string(bytes.ToValidUTF8(body, nil))})
		for _, id := range identify(string(body)) {
			if !slices.Contains(p.licences, id) {
				p.licences = append(p.licences, id)
			}
		}
	}
	if len(p.licences) == 0 {
		return fmt.Errorf("%s: no licence that is known is in %s: teach licences.go its words, or do without it", p.name, dir)
	}
	slices.Sort(p.licences)
	return nil
}
