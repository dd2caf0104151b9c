package signalbox_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// A schedule and its task share these checks.
func TestChecksNameTheField(t *testing.T) {
	long := strings.Repeat("x", signalbox.MaxPromptBytes)
	for prompt, code := range map[string]signalbox.Code{
		"say hello": "", long: "", long + "x": signalbox.CodeTooLarge, "": signalbox.CodeValidation, " \n": signalbox.CodeValidation,
		"a\x00b": signalbox.CodeValidation, "a\xffb": signalbox.CodeValidation,
	} {
		if got := signalbox.CodeOf(signalbox.CheckPrompt(prompt)); got != code {
			t.Errorf("a prompt of %d bytes: %q, want %q", len(prompt), got, code)
		}
	}
	for _, c := range []struct {
		model, tier string
		project     *signalbox.Project
		field       string
	}{
		{"m", "t", &signalbox.Project{Name: "shop", Path: "src/shop"}, ""},
		{"-m", "", nil, "model"},
		{"", "a\nb", nil, "tier"},
		{"", strings.Repeat("t", signalbox.MaxWordBytes+1), nil, "tier"},
		{"", "", &signalbox.Project{Name: "\x1b[31m"}, "project.name"},
		{"", "", &signalbox.Project{Path: strings.Repeat("p", signalbox.MaxPathBytes+1)}, "project.path"},
	} {
		err := signalbox.CheckWords(c.model, c.tier, c.project)
		field := ""
		if e, ok := err.(*signalbox.Error); ok { //nolint:errorlint // it is not wrapped
			field = e.Field
		}
		if field != c.field || (err == nil) != (c.field == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
