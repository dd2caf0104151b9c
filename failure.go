package signalbox

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Why a task failed, in one line, and which failures have the same cause.

// MaxFailureLine bounds Task.Failure, in bytes.
const MaxFailureLine = 300

// causeLength is how many digits a Fingerprint has.
const causeLength = 12

// failureLines is how many of the last lines of a log are searched.
const failureLines = 2000

// weight says how well a line explains why a program failed: an exception or a compiler
// message, the word error with a message, or a mere mention.
type weight int

const (
	none weight = iota
	mentioned
	likely
	sure
)

// SetFailure sets Failure and Cause of a task that has just ended with the result r (nil:
// none). They stay empty unless the task failed by itself: a released task has no cause,
// and the error of a tool call goes to its caller.
func (t *Task) SetFailure(r *Result) {
	t.Failure, t.Cause = "", ""
	if t.State != Failed && t.State != Timeout || t.Reason == ReasonReleased || t.Mode == ModeTool {
		return
	}
	line, said := failureIn(t.Message)
	if r != nil && (t.Reason == ReasonExitNonzero || t.Reason == ReasonAgentError && said < likely) {
		enough := mentioned // a program's log is about the program, an agent's log about its work
		if t.Reason == ReasonAgentError {
			enough = sure
		}
		for _, text := range []string{r.Tail, r.Output} {
			if found, how := failureIn(text); how >= enough {
				line = found
				break
			}
		}
	}
	if line == "" {
		line = firstLine(t.Message)
	}
	t.Failure = clipLine(line)
	t.Cause = Fingerprint(t.Failure)
}

// FailureLine returns the line of a log that most likely says why a program failed; "" if no
// line mentions a failure.
func FailureLine(log string) string {
	line, _ := failureIn(log)
	return line
}

// failureIn searches a log from its end, so that the newest of equally good lines is chosen.
func failureIn(log string) (best string, most weight) {
	end := len(log)
	for range failureLines {
		if end <= 0 || most == sure {
			break
		}
		begin := strings.LastIndexByte(log[:end], '\n') + 1
		raw := log[begin:end]
		end = begin - 1
		before := ""
		if end > 0 {
			before = log[strings.LastIndexByte(log[:end], '\n')+1 : end]
		}
		if !mayTell(raw) && !strings.Contains(before, "panicked at") {
			continue
		}
		line := PlainLine(raw)
		if how := weigh(line, PlainLine(before)); how > most {
			best, most = strings.TrimSpace(line), how
		}
	}
	return best, most
}

// tellWords is a cheap filter: every line that mentions a failure has one of these words. Most
// lines have none and are skipped.
var tellWords = []string{
	"error", "exception", "interrupt", "exit", "fail", "caused by", "panic", "fatal", "not found",
	"no such file", "denied", "syntax", "cannot", "undefined", "refused",
}

func mayTell(line string) bool {
	line = strings.ToLower(line)
	for _, word := range tellWords {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

var (
	causes = regexp.MustCompile(strings.Join([]string{
		`^(?:Uncaught )?(?:[A-Za-z_$][\w$]*\.)*[A-Za-z_$][\w$]*(?:Error|Exception|Interrupt|Exit|Failure)(?: \[\w+\])?(?::|$)`, // Python, Node.js, Java
		`^(?:Caused by: |Exception in thread )`, // Java
		`^(?:panic|fatal|fatal error): `,        // Go, git
		`^\s*--- FAIL: `,
		`^error(?:\[E\d+\])?: `, // Rust
		`^thread '.*' (?:\(\d+\) )?panicked at `,
		`^\S*(?:sh|bash|zsh|dash)\S*: .*(?:not found|No such file|Permission denied|syntax error|cannot)`, // shells
		`^\S+:\d+:(?:\d+:)? (?:fatal )?(?:error|undefined|cannot|syntax)`,                                 // compilers
	}, "|"))
	summary  = regexp.MustCompile(`^error: (?:could not compile|aborting)`) // summary of errors already printed, Rust
	panicked = regexp.MustCompile(`^thread '.*panicked at .*:$`)            // the next line says why, Rust
	noise    = regexp.MustCompile(`(?i)^\s*(?:at |File "|goroutine |npm (?:ERR!|error) (?:A complete log|code |errno |path )|Traceback \(most recent|note: run with)` +
		`|\b(?:0|no) (?:errors?|failures?|failed)\b|^exit status \d+$`)
	tells    = regexp.MustCompile(`(?i)\b(?:fatal|panic|error|failed|failure|denied|refused)\b\s*[:!]|\w(?:Error|Exception)\b|command not found`)
	mentions = regexp.MustCompile(`(?i)\b(?:errors?|fatal|panic|exception|failed|failure|denied|not found|cannot|refused)\b`)
)

// weigh rates a line, given the line before it.
func weigh(line, before string) weight {
	switch {
	case noise.MatchString(line):
		return none
	case panicked.MatchString(before), causes.MatchString(line) && !summary.MatchString(line) && !panicked.MatchString(line):
		return sure
	case tells.MatchString(line):
		return likely
	case mentions.MatchString(line):
		return mentioned
	}
	return none
}

// escapes are the sequences that a terminal does not show: CSI, the strings (OSC, DCS,
// SOS, PM, APC) with their end, and the short ones.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)|\x1b[ -/]+[0-~]|\x1b[0-Z\\\\^-~]")

// PlainLine returns a line of a log as a terminal shows it: only what follows its last carriage
// return, without escape sequences and control characters other than tabs.
func PlainLine(line string) string {
	line = strings.TrimSuffix(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(line, ""))
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(PlainLine(strings.TrimSuffix(line, "\n"))); line != "" {
			return line
		}
	}
	return ""
}

// clipLine cuts a line to MaxFailureLine bytes, at a rune boundary.
func clipLine(line string) string {
	line = strings.ToValidUTF8(line, "�")
	if len(line) <= MaxFailureLine {
		return line
	}
	cut := MaxFailureLine - len("…")
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

// varying lists what differs between failures with the same cause, and its replacement.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?i)((?:/tmp|/var/tmp|/var/folders|/private/tmp|/dev/shm|\\Temp|/T)[/\\])[^\s:'"` + "`" + `,;)\]]+`), "${1}*"}, // temporary files
	{regexp.MustCompile(`(^|[\s(=:,\[])(?:'[^']*'|"[^"]*"|` + "`[^`]*`" + `)`), "${1}*"},                                                // quoted values
	{regexp.MustCompile(`(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b`), "*"},
	{regexp.MustCompile(`\b[a-zA-Z]+[-_][0-9a-z]{12,}\b`), "*"},                  // ids such as queue-06h09jkkfrsk
	{regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h|d))+\b`), "*"},   // durations
	{regexp.MustCompile(`\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]*\b`), "*"}, // hexadecimal numbers
	{regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`), "*"},                          // numbers
	{regexp.MustCompile(`\s+`), " "},
}

// Fingerprint returns the same value for lines that differ only in numbers, durations, ids,
// hexadecimal numbers, names of temporary files and quoted values; "" for an empty line.
func Fingerprint(line string) string {
	if line == "" {
		return ""
	}
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.by)
	}
	sum := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(line))))
	return hex.EncodeToString(sum[:causeLength/2])
}
