package main

import (
	"bytes"
	"fmt"
	"strings"
)

// words lists sentences that occur in only one licence, by SPDX identifier.
var words = []struct{ id, has, not string }{
	{"Apache-2.0", "apache license version 2.0", ""},
	{"Apache-2.0", "licensed under the apache license, version 2.0", ""},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software", ""},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted", ""},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted", ""},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from", ""},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice", "may be used to endorse or promote"},
	{"MPL-2.0", "mozilla public license version 2.0", ""},
	{"blessing", "may you do good and not evil", ""},
	{"CC0-1.0", "cc0 1.0 universal", ""},
	{"Unlicense", "this is free and unencumbered software released into the public domain", ""},
}

// identify returns the licences whose words occur in a text.
func identify(body string) []string {
	plain := strings.Join(strings.Fields(strings.NewReplacer("*", " ", "//", " ", "#", " ", "“", `"`, "”", `"`).Replace(strings.ToLower(body))), " ")
	var out []string
	for _, w := range words {
		if strings.Contains(plain, w.has) && (w.not == "" || !strings.Contains(plain, w.not)) && !contains(out, w.id) {
			out = append(out, w.id)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// notices returns the text that is shipped with the program: its components, their
// authors and licences.
func notices(parts []part) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s is made with the work of others. What of it is in this program, and on which terms:\n", product)
	for _, p := range parts {
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 80), p.name, p.version, strings.Join(p.licences, ", "))
		for _, t := range p.texts {
			fmt.Fprintf(&out, "%s\n%s:\n\n%s\n", strings.Repeat("-", 80), t.name, strings.TrimSpace(t.body))
		}
	}
	return out.Bytes()
}
