package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // required by dpkg --verify; SHA256SUMS has secure hashes
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// deb packs a Debian package for each Linux target. It has no maintainer scripts, so
// it does not start a service.
func deb(g goods) (paths []string, err error) {
	for _, b := range g.built {
		if b.os != "linux" {
			continue
		}
		files, err := debFiles(g, b)
		if err != nil {
			return nil, err
		}
		var sums strings.Builder
		size := 0 // KiB, as dpkg-gencontrol counts: each file rounded up, 1 for each folder
		data := withFolders(files)
		for _, e := range data {
			if strings.HasSuffix(e.name, "/") {
				size++
				continue
			}
			size += (len(e.data) + 1023) / 1024
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.data), e.name) //nolint:gosec // see above
		}
		control := []entry{{name: "control", data: control(g.release, b.target, size)}, {name: "md5sums", data: []byte(sums.String())}}
		archive, err := debArchive(control, data, g.at)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(g.out, fmt.Sprintf("%s_%s_%s.deb", product, debVersion(g.version), b.arch))
		if err := publish(path, archive); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// debFiles returns the installed files with their paths.
func debFiles(g goods, b built) ([]entry, error) {
	const docs = "usr/share/doc/" + product + "/"
	unit, err := g.file(unitFile, "usr/lib/systemd/system/"+product+".service")
	if err != nil {
		return nil, err
	}
	if unit.data, err = installedUnit(unit.data); err != nil {
		return nil, err
	}
	files := []entry{
		unit,
		{name: "usr/bin/" + product, data: b.program, program: true},
		{name: docs + "copyright", data: []byte(copyright)},
		{name: docs + noticesFile, data: b.notices},
	}
	for _, doc := range []string{"README.md", "CHANGELOG.md", "docs/cli.md", "docs/operations.md"} {
		e, err := g.file(doc, docs+doc)
		if err != nil {
			return nil, err
		}
		files = append(files, e)
	}
	places := map[string]string{
		".bash": "usr/share/bash-completion/completions/" + product,
		".fish": "usr/share/fish/vendor_completions.d/" + product + ".fish",
		".zsh":  "usr/share/zsh/vendor-completions/_" + product,
	}
	for _, shell := range g.says.shells {
		files = append(files, entry{name: places[filepath.Ext(shell.name)], data: shell.data})
	}
	for _, page := range g.says.manuals { // Debian requires gzip, without a time
		data, err := zipped(page.data)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: "usr/share/man/man1/" + path.Base(page.name) + ".gz", data: data})
	}
	return files, nil
}

// installedUnit returns the unit for a program in /usr/bin, without the comment on
// how to install it.
func installedUnit(unit []byte) ([]byte, error) {
	const start, byHand = "\nExecStart=/usr/local/bin/" + product, "#   install -m 0644 "
	if !bytes.Contains(unit, []byte(start)) {
		return nil, fmt.Errorf("%s has no line %q", unitFile, strings.TrimSpace(start))
	}
	unit = bytes.Replace(unit, []byte(start), []byte("\nExecStart=/usr/bin/"+product), 1)
	if at := bytes.Index(unit, []byte(byHand)); at >= 0 {
		line := bytes.IndexByte(unit[at:], '\n')
		unit = append(unit[:at:at], unit[at+line+1:]...)
	}
	return unit, nil
}

var commitsAfter = regexp.MustCompile(`-(\d+)-g([0-9a-f]+)$`)

// debVersion returns a version that sorts pre-releases before their release, and
// commits after a tag after it: 1.2.0~rc.1 < 1.2.0 < 1.2.0+3.gabc. A Debian version
// begins with a digit.
func debVersion(version string) string {
	if !strings.Contains(version, ".") { // a commit without a tag
		return "0.0.0~g" + version
	}
	return strings.ReplaceAll(commitsAfter.ReplaceAllString(version, "+$1.g$2"), "-", "~")
}

func control(r release, t target, size int) []byte {
	return fmt.Appendf(nil, `Package: %s
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Recommends: ca-certificates
Suggests: bubblewrap
Section: net
Priority: optional
Homepage: %s
Description: durable queue in front of AI agents
 Signalbox accepts prompts, keeps them in order through crashes, gives each to
 an agent when it is free, and follows it to its end. Calls of shared tools wait
 their turn in tool queues with a capacity.
`, product, debVersion(r.version), t.arch, maintainer, size, homepage)
}

const (
	maintainer = "The Signalbox authors <signalbox-ai@users.noreply.github.com>"
	copyright  = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Signalbox
Source: ` + homepage + `
Comment: What others wrote of the program, and on which terms, stands in
 /usr/share/doc/signalbox/` + noticesFile + `.

Files: *
Copyright: The Signalbox authors
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
`
)

// debArchive returns an ar(1) archive of the two tarballs, as specified in deb(5).
func debArchive(control, data []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	member := func(name string, body []byte) {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, at.Unix(), 0, 0, "100644", len(body))
		out.Write(body)
		if len(body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	member("debian-binary", []byte("2.0\n"))
	for _, part := range []struct {
		name    string
		entries []entry
	}{{"control.tar.gz", control}, {"data.tar.gz", data}} {
		plain, err := tarball(append(below(".", part.entries), entry{name: "./"}), at)
		if err != nil {
			return nil, err
		}
		body, err := zipped(plain)
		if err != nil {
			return nil, err
		}
		member(part.name, body)
	}
	return out.Bytes(), nil
}
