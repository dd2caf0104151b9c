package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The part of CycloneDX 1.6 that is used here.
type (
	bom struct {
		Format       string      `json:"bomFormat"`
		Spec         string      `json:"specVersion"`
		Serial       string      `json:"serialNumber,omitempty"`
		Version      int         `json:"version"`
		Metadata     metadata    `json:"metadata"`
		Components   []component `json:"components"`
		Dependencies []depends   `json:"dependencies"`
	}
	metadata struct {
		Timestamp string     `json:"timestamp"`
		Component component  `json:"component"`
		Props     []property `json:"properties"`
	}
	component struct {
		Ref      string    `json:"bom-ref"`
		Type     string    `json:"type"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		Scope    string    `json:"scope,omitempty"`
		Hashes   []hash    `json:"hashes,omitempty"`
		Licences []licence `json:"licenses"`
		URL      string    `json:"purl"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	licence struct {
		Licence struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	depends struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

func licencesOf(ids []string) []licence {
	out := make([]licence, len(ids))
	for i, id := range ids {
		out[i].Licence.ID = id
	}
	return out
}

// bill returns the SBOM of a program. Its serial number is a hash of the content,
// so that the same program has the same number.
func bill(r release, t target, goes, sum string, parts []part) ([]byte, error) {
	self := component{
		Ref: "pkg:golang/github.com/signalbox-ai/signalbox@v" + r.version, Type: "application", Name: product, Version: r.version,
		Hashes: []hash{{"SHA-256", sum}}, Licences: licencesOf([]string{"Apache-2.0"}),
	}
	self.URL = self.Ref
	out := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []component{},
		Metadata: metadata{Timestamp: r.at.Format(time.RFC3339), Component: self, Props: []property{
			{"signalbox:commit", r.commit}, {"signalbox:go", goes}, {"signalbox:target", t.String()},
		}},
	}
	needs := depends{Ref: self.Ref, On: []string{}}
	for _, p := range parts {
		c := component{Ref: p.url, Type: "library", Name: p.name, Version: p.version, Scope: "required", Licences: licencesOf(p.licences), URL: p.url}
		if p.sum != "" {
			c.Hashes = []hash{{"SHA-256", p.sum}}
		}
		out.Components, needs.On = append(out.Components, c), append(needs.On, p.url)
		out.Dependencies = append(out.Dependencies, depends{Ref: p.url, On: []string{}})
	}
	out.Dependencies = append(out.Dependencies, needs)
	plain, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	out.Serial = serial(plain)
	var to strings.Builder
	enc := json.NewEncoder(&to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(out)
	return []byte(to.String()), err
}

// serial returns a UUID (version 8) derived from some bytes.
func serial(of []byte) string {
	b := sha256.Sum256(of)
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
