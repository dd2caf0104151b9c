package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

const npmScope = "@signalbox-ai/"

// The names of the targets in Node.js.
var (
	nodeSystems = map[string]string{"linux": "linux", "darwin": "darwin"}
	nodeArchs   = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// packageJSON is the package.json of a package.
type packageJSON struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Homepage    string            `json:"homepage"`
	Repository  map[string]string `json:"repository"`
	Bin         map[string]string `json:"bin,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Unplugged   bool              `json:"preferUnplugged,omitempty"` // Yarn cannot run programs in a zip
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
}

// npm packs a package with the program for each target, and the main package that
// users install: it depends on the package of their platform and has a script that
// finds the program.
func npm(g goods) ([]string, error) {
	meta := packageJSON{
		Version: npmVersion(g.version), Description: "Durable queue in front of AI agents", License: "Apache-2.0", Homepage: homepage,
		Repository: map[string]string{"type": "git", "url": "git+" + homepage + ".git"},
	}
	terms, err := g.file("LICENSE", "LICENSE")
	if err != nil {
		return nil, err
	}
	main := meta
	main.Name, main.Bin = product, map[string]string{product: "bin/signalbox.js"}
	main.Engines, main.Optional = map[string]string{"node": ">=18"}, map[string]string{}
	var paths []string
	for _, b := range g.built {
		system, arch := nodeSystems[b.os], nodeArchs[b.arch]
		of := meta
		of.Name, of.OS, of.CPU, of.Unplugged = npmScope+system+"-"+arch, []string{system}, []string{arch}, true
		of.Description = fmt.Sprintf("The program of the package signalbox for %s on %s", system, arch)
		main.Optional[of.Name] = of.Version
		path, err := npmPack(g, of, terms, entry{name: "bin/" + product, data: b.program, program: true}, entry{name: noticesFile, data: b.notices})
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	script, err := g.file("contrib/npm/signalbox.js", "bin/signalbox.js")
	if err != nil {
		return nil, err
	}
	script.program = true
	readme, err := g.file("README.md", "README.md")
	if err != nil {
		return nil, err
	}
	path, err := npmPack(g, main, terms, script, readme)
	return append(paths, path), err
}

// npmPack writes a package like npm pack, under the same name.
func npmPack(g goods, meta packageJSON, files ...entry) (string, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(meta); err != nil {
		return "", err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(meta.Name, "@"), "/", "-")
	path := filepath.Join(g.out, name+"-"+meta.Version+".tgz")
	return path, pack(path, "package", append(files, entry{name: "package.json", data: text.Bytes()}), g.at)
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(-.+)?$`)

// npmVersion returns a version for npm: without the part after a plus, and
// 0.0.0-gCOMMIT for a commit without a tag.
func npmVersion(version string) string {
	if version, _, _ = strings.Cut(version, "+"); semver.MatchString(version) {
		return version
	}
	return "0.0.0-g" + strings.ReplaceAll(version, ".", "-")
}
