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

// What index.html has in place of what is only known here.
const (
	baseMark    = "ASSETS"           // path of the assets, with their hash
	preloadMark = "<!-- PRELOAD -->" // the modules that the first one needs
	firstModule = "main.js"
)

// mediaTypes are those of all that is served; a file of another kind, such as
// a README, is not.
var mediaTypes = map[string]string{
	".js":    "text/javascript; charset=utf-8",
	".mjs":   "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// load reads what is embedded. A file that cannot be read there means that the
// program itself is broken.
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

// read returns all files by their path below assets. A licence has no ending
// of its own and gets one, so that it can be read where the code is served.
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

// hashOf is the same for the same files, whatever their order.
func hashOf(content map[string][]byte) string {
	sum := sha256.New()
	for _, name := range sorted(content) {
		fmt.Fprintf(sum, "%s\x00%d\x00", name, len(content[name]))
		sum.Write(content[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func sorted(content map[string][]byte) []string { return slices.Sorted(maps.Keys(content)) }

// indexPage fills in index.html. The browser is told at once of all modules
// that the first one imports, so that it need not find them one after the
// other.
func indexPage(content map[string][]byte, base string) []byte {
	var preload strings.Builder
	for _, name := range modules(content, firstModule) {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", base, name)
	}
	page := bytes.ReplaceAll(content["index.html"], []byte(baseMark), []byte(base))
	return bytes.Replace(page, []byte(preloadMark+"\n"), []byte(preload.String()), 1)
}

// staticImport finds what a module needs before it runs; import() is for
// later.
var staticImport = regexp.MustCompile(`(?m)^(?:import|export)\b[^;"']*?["'](\.[^"']+)["']`)

// modules lists a module and all that it imports, itself first.
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
