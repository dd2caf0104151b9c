package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// members reads a tarball.
func members(t *testing.T, data []byte) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for in := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if headers[h.Name] != nil {
			t.Errorf("%s is there twice", h.Name)
		}
		files[h.Name], headers[h.Name] = body, h
	}
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// blobs follows descriptors, verifies the blobs, and records which were read.
type blobs struct {
	t     *testing.T
	files map[string][]byte
	read  map[string]bool
}

func (b blobs) get(d descriptor, mediaType string, into any) []byte {
	b.t.Helper()
	name := "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
	data, ok := b.files[name]
	if !ok || d.Size != len(data) || d.Digest != "sha256:"+hashOf(data) || d.MediaType != mediaType {
		b.t.Fatalf("%+v is not of its blob of %d bytes, or no %s", d, len(data), mediaType)
	}
	b.read[name] = true
	if into != nil {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(into); err != nil {
			b.t.Fatalf("%s: %v", data, err)
		}
	}
	return data
}

// The layout is consistent when read back: each blob matches its descriptor, there
// are no unused blobs, and the image has the files that the program needs and runs
// without privileges.
func TestImageLayout(t *testing.T) {
	g := sampled(t, "program")
	path := packed(t, g, image)[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files, headers := members(t, data)
	if string(files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", files["oci-layout"])
	}
	var top, index imageIndex
	if err := json.Unmarshal(files["index.json"], &top); err != nil || top.Schema != 2 || top.MediaType != indexType || len(top.Manifests) != 1 {
		t.Fatalf("%s %v", files["index.json"], err)
	}
	if name := top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; name != "1.2.0" {
		t.Errorf("it is called %q", name)
	}
	b := blobs{t, files, map[string]bool{}}
	b.get(top.Manifests[0], indexType, &index)
	var archs []string
	for _, m := range index.Manifests {
		archs = append(archs, m.Platform.OS+"/"+m.Platform.Architecture)
		var manifest imageManifest
		var config imageConfig
		b.get(m, manifestType, &manifest)
		b.get(manifest.Config, configType, &config)
		if config.platform != *m.Platform || len(manifest.Layers) != 1 || config.RootFS.Type != "layers" || len(config.RootFS.Diffs) != 1 || len(config.History) != 1 {
			t.Fatalf("%+v %+v", manifest, config)
		}
		for _, label := range []string{"title", "version", "revision", "source", "licenses", "created"} {
			if config.Config.Labels["org.opencontainers.image."+label] == "" {
				t.Errorf("no label %s", label)
			}
		}
		layer := unzipped(t, b.get(manifest.Layers[0], layerType, nil))
		if config.RootFS.Diffs[0] != "sha256:"+hashOf(layer) {
			t.Errorf("the layer is not %v", config.RootFS.Diffs)
		}
		checkLayer(t, layer)
	}
	if !slices.Equal(archs, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("%v", archs)
	}
	for name := range files {
		if strings.HasPrefix(name, "blobs/sha256/") && name != "blobs/sha256/" && !b.read[name] {
			t.Errorf("nobody names %s", name)
		}
	}
	if headers["blobs/sha256/"] == nil {
		t.Error("blobs/sha256/ is no folder of the archive")
	}
	if _, err := exec.LookPath("skopeo"); err == nil {
		ran(t, "skopeo", "inspect", "--raw", "oci-archive:"+path)
		ran(t, "skopeo", "copy", "--all", "oci-archive:"+path, "oci:"+filepath.Join(t.TempDir(), "copy")+":1.2.0")
	}
}

func checkLayer(t *testing.T, layer []byte) {
	t.Helper()
	files, headers := members(t, layer)
	if h := headers["signalbox"]; h == nil || h.Mode != 0o755 || string(files["signalbox"]) != "program" {
		t.Errorf("the program: %+v", h)
	}
	if h := headers["data/"]; h == nil || h.Uid != nobody || h.Gid != nobody || h.Mode != 0o700 || h.Typeflag != tar.TypeDir {
		t.Errorf("the folder of data: %+v", h)
	}
	known := 0
	for rest := files["etc/ssl/certs/ca-certificates.crt"]; ; known++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if known < 100 {
		t.Errorf("%d authorities: a model's endpoint cannot be asked with them", known)
	}
}

// The image has the same run configuration as the Dockerfile's.
func TestImageRunsLikeTheDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	said := map[string]string{}
	for _, l := range strings.Split(last, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		said[word] = rest
	}
	list := func(l []string) string { out, _ := json.Marshal(l); return string(out) }
	is := runs(nil)
	for word, want := range map[string]string{
		"USER": is.User, "ENV": strings.Join(is.Env, " "), "ENTRYPOINT": list(is.Entrypoint), "CMD": list(is.Cmd),
	} {
		if said[word] != want {
			t.Errorf("%s %s in the Dockerfile, %s here", word, said[word], want)
		}
	}
	if _, ok := is.ExposedPorts[said["EXPOSE"]+"/tcp"]; !ok || len(is.ExposedPorts) != 1 {
		t.Errorf("EXPOSE %s in the Dockerfile, %v here", said["EXPOSE"], is.ExposedPorts)
	}
	if _, ok := is.Volumes[said["VOLUME"]]; !ok || len(is.Volumes) != 1 {
		t.Errorf("VOLUME %s in the Dockerfile, %v here", said["VOLUME"], is.Volumes)
	}
}
