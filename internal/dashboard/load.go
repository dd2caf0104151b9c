package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed all:assets
var embedded embed.FS

// Placeholders in index.html.
const (
	baseMark    = "ASSETS"           // path of the assets, with their hash
	preloadMark = "<!-- PRELOAD -->" // the modules that the first one imports
	firstModule = "main.js"
)

// mediaTypes has the types of served files; others, such as the README, are not
// served.
var mediaTypes = map[string]string{
	".js":    "text/javascript; charset=utf-8",
	".mjs":   "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// load reads the embedded files. It panics if one cannot be read: then the program
// itself is broken.
func load() (assets map[string]*file, index *file) {
	content := read()
	base := assetsRoot + hashOf(content)
	assets = make(map[string]*file, len(content))
	for name, text := range content {
		if media, ok := mediaTypes[path.Ext(name)]; ok {
			assets[base+"/"+name] = newFile(media, text)
		}
	}
	return assets, newFile("text/html; charset=utf-8", indexPage(content, base))
}

// read returns all files by their path below assets. Licences get an extension, so
// that they are served with the code.
func read() map[string][]byte {
	content := map[string][]byte{}
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		name = strings.TrimPrefix(name, "assets/")
		if path.Base(name) == "LICENSE" {
			name += ".txt"
		}
		content[name] = text
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("dashboard: the embedded pages cannot be read: %v", err))
	}
	return content
}

// hashOf returns a hash of the files that does not depend on their order.
func hashOf(content map[string][]byte) string {
	sum := sha256.New()
	for _, name := range sorted(content) {
		fmt.Fprintf(sum, "%s\x00%d\x00", name, len(content[name]))
		sum.Write(content[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func sorted(content map[string][]byte) []string { return slices.Sorted(maps.Keys(content)) }

// indexPage fills in index.html. It lists all modules that the first one imports, so
// that the browser loads them at once instead of one after another.
func indexPage(content map[string][]byte, base string) []byte {
	var preload strings.Builder
	for _, name := range modules(content, firstModule) {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base, name)
	}
	page := bytes.ReplaceAll(content["index.html"], []byte(baseMark), []byte(base))
	return bytes.Replace(page, []byte(preloadMark+"\n"), []byte(preload.String()), 1)
}

// staticImport matches the static imports of a module, not import().
var staticImport = regexp.MustCompile(`(?m)^(?:import|export)\b[^;"']*?["'](\.[^"']+)["']`)

// modules lists a module and everything that it imports, itself first.
func modules(content map[string][]byte, first string) []string {
	found := []string{first}
	for i := 0; i < len(found); i++ {
		for _, m := range staticImport.FindAllSubmatch(content[found[i]], -1) {
			name := path.Join(path.Dir(found[i]), string(m[1]))
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}
