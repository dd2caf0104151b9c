package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The part of the OCI image specification 1.1 that is used here.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	imageIndex struct {
		Schema      int               `json:"schemaVersion"`
		MediaType   string            `json:"mediaType"`
		Manifests   []descriptor      `json:"manifests"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	imageManifest struct {
		Schema      int               `json:"schemaVersion"`
		MediaType   string            `json:"mediaType"`
		Config      descriptor        `json:"config"`
		Layers      []descriptor      `json:"layers"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	imageConfig struct {
		Created string `json:"created"`
		platform
		Config  runConfig           `json:"config"`
		RootFS  rootFS              `json:"rootfs"`
		History []map[string]string `json:"history"`
	}
	runConfig struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		Cmd          []string
		Volumes      map[string]struct{}
		Labels       map[string]string
	}
	rootFS struct {
		Type  string   `json:"type"`
		Diffs []string `json:"diff_ids"`
	}
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	nobody       = 65532 // nonroot, as in the Dockerfile
)

// runs returns the run configuration of the image, the same as the Dockerfile's.
func runs(labels map[string]string) runConfig {
	return runConfig{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Env:          []string{"SIGNALBOX_ADDR=0.0.0.0:8080", "SIGNALBOX_DATA=/data", "SIGNALBOX_HOME=/data"},
		Entrypoint:   []string{"/signalbox"},
		Cmd:          []string{"director"},
		Volumes:      map[string]struct{}{"/data": {}},
		Labels:       labels,
	}
}

// layout is an OCI image layout that grows blob by blob.
type layout struct{ files []entry }

func (l *layout) add(mediaType string, data []byte) descriptor {
	sum := hashOf(data)
	name := "blobs/sha256/" + sum
	if !slices.ContainsFunc(l.files, func(e entry) bool { return e.name == name }) {
		l.files = append(l.files, entry{name: name, data: data})
	}
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(data)}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.add(mediaType, data), err
}

// image writes an OCI layout with an image for each Linux target under one index, so
// that one name covers all architectures.
func image(g goods) ([]string, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":       product,
		"org.opencontainers.image.description": "Durable queue in front of AI agents",
		"org.opencontainers.image.source":      homepage,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     g.version,
		"org.opencontainers.image.revision":    g.commit,
		"org.opencontainers.image.created":     g.at.Format(time.RFC3339),
	}
	terms, err := g.file("LICENSE", "licenses/LICENSE")
	if err != nil {
		return nil, err
	}
	var to layout
	of := imageIndex{Schema: 2, MediaType: indexType, Annotations: labels}
	for _, b := range g.built {
		if b.os != "linux" {
			continue
		}
		made, err := to.addImage(b, terms, labels, g.at)
		if err != nil {
			return nil, err
		}
		of.Manifests = append(of.Manifests, made)
	}
	if len(of.Manifests) == 0 {
		return nil, nil
	}
	all, err := to.addJSON(indexType, of)
	if err != nil {
		return nil, err
	}
	tag := strings.ReplaceAll(g.version, "+", "-")
	all.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "docker.io/library/" + product + ":" + tag, // the name after docker load
	}
	index, err := json.Marshal(imageIndex{Schema: 2, MediaType: indexType, Manifests: []descriptor{all}})
	if err != nil {
		return nil, err
	}
	files := append(to.files, entry{name: "index.json", data: index}, entry{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	data, err := tarball(withFolders(files), g.at)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(g.out, product+"_"+g.version+"_oci.tar")
	return []string{path}, publish(path, data)
}

// addImage adds the image of one target: its layer, its config, its manifest.
func (l *layout) addImage(b built, terms entry, labels map[string]string, at time.Time) (descriptor, error) {
	plain, err := tarball(withFolders([]entry{
		{name: product, data: b.program, program: true},
		{name: "data/", owner: nobody},
		{name: "etc/ssl/certs/ca-certificates.crt", data: authorities()},
		terms,
		{name: "licenses/" + noticesFile, data: b.notices},
	}), at)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := zipped(plain)
	if err != nil {
		return descriptor{}, err
	}
	on, when := platform{b.arch, b.os}, at.Format(time.RFC3339)
	config, err1 := l.addJSON(configType, imageConfig{
		Created: when, platform: on, Config: runs(labels),
		RootFS:  rootFS{"layers", []string{"sha256:" + hashOf(plain)}},
		History: []map[string]string{{"created": when, "created_by": "scripts/release"}},
	})
	made, err2 := l.addJSON(manifestType, imageManifest{
		Schema: 2, MediaType: manifestType, Config: config, Layers: []descriptor{l.add(layerType, layer)}, Annotations: labels,
	})
	made.Platform = &on
	return made, errors.Join(err1, err2)
}

// authorities returns Mozilla's root certificates, in the version of go.mod: those of
// the build machine would not be reproducible. It omits roots that are trusted only
// for old certificates, which a certificate file cannot express.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer never fails
		}
	}
	return out.Bytes()
}
