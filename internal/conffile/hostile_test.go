package conffile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// TestHostileFiles: hostile files are quickly either read or refused with a
// helpful message.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x, x]\n"
	for i := range 20 {
		last, next := string(rune('a'+i)), string(rune('b'+i))
		bomb += next + ": &" + next + " [" + strings.Repeat("*"+last+", ", 9) + "*" + last + "]\n"
	}
	for name, c := range map[string]struct{ text, want string }{ // want: "" if it is read
		"empty.yaml":       {"", ""},
		"empty.json":       {" \n", ""},
		"bom.json":         {"\xef\xbb\xbf", ""},
		"bom.yaml":         {"\xef\xbb\xbfa: 1\r\nb: 2\r\n", ""},
		"crlf.json":        {"{\r\n\"a\": 1\r\n}\r\n", ""},
		"large.json":       {"[" + strings.Repeat("1,", 5<<20) + "1]", "it is larger than 1048576 bytes"},
		"large.yaml":       {strings.Repeat("- a\n", 3<<20), "it is larger than 1048576 bytes"},
		"list.json":        {"[" + strings.Repeat("1,", 100_000) + "1]", ""},
		"keys.json":        {`{"a":1` + strings.Repeat(`,"a":1`, 20_000) + "}", ""},
		"text.json":        {`{"a":"` + strings.Repeat(`\n\"[{`, 100_000) + `"}`, ""},
		"deep.json":        {strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "it is not JSON: "},
		"deep_list.json":   {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "it is nested more than 100 levels deep"},
		"deep.yaml":        {strings.Repeat("[", 100_000), "it is nested more than 100 levels deep"},
		"deep_dashes.yaml": {strings.Repeat("- ", 100_000) + "a", "it is nested more than 100 levels deep"},
		"bomb.yaml":        {"a: &a [x, x]\n" + bomb, ""}, // it becomes large only when traversed: ToJSON limits that
		"loop.yaml":        {"a: &a [*a]\n", ""},
		"tabs.yaml":        {"a:\n\t- b\n", "it is not YAML: "},
		"tabs.json":        {"\t{\t\"a\"\t:\t1\t,\n\t\"b\"\t:\t[\t]\t}\t", ""},
		"zero.json":        {"{\"a\": \"\x00\"}", "it is not JSON: "},
		"zeros.json":       {strings.Repeat("\x00", 1000), "it is not JSON: "},
		"zeros.yaml":       {strings.Repeat("\x00", 1000), ""},
		"utf8.json":        {"{\"a\": \"\xff\xfe\"}", ""},
		"utf16.json":       {"\xff\xfe{\x00}\x00", "it is not JSON: "},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		root, _, err := conffile.Read(path)
		if bad, ok := errors.AsType[*conffile.Error](err); (err == nil) != (c.want == "") || err != nil && (!ok || !strings.HasPrefix(bad.Text, c.want) || len(bad.Text) > 300) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if root != nil && name == "bomb.yaml" {
			if _, err := conffile.ToJSON(root, nil); err == nil {
				t.Errorf("%s: it became JSON", name)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		} else if took > 300*time.Millisecond {
			t.Logf("%s: %s", name, took)
		}
	}
}
