// Package image builds the container image of a server without a daemon: an index of all architectures
// as an OCI layout in a tar file, and one file per architecture for `docker load`. The image has only the
// program, the certificate authorities that browsers trust, and folders that its user may write.
//
// It compiles nothing and pushes nothing.
package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The user of the image. It is a number, so that Kubernetes can check that it is not root.
const (
	uid  = 65532
	user = "65532:65532"
)

// dataFolder is the volume with all data.
const dataFolder = "/var/lib/freshet"

// Input is what an image is made of.
type Input struct {
	Binaries []Binary
	Version  string    // semantic version without a v
	Commit   string    // full hash
	Time     time.Time // time stamp of all files, and of the image
	Root     string    // folder of the repository: name of the image, licence
	Dist     string    // folder of the files
}

// Binary is the program of one architecture.
type Binary struct {
	Arch    string // amd64 or arm64
	Path    string
	Notices string // path of the licences of third parties; "" for none
}

// Name returns the name and the tag of the image: those that `freshet generate compose` of this version
// uses. Characters that a tag must not have become "-".
func Name(root, version string) (name.Tag, error) {
	path := filepath.Join(root, "internal", "cli", "generatecmd", "templates", "image")
	text, err := os.ReadFile(path)
	if err != nil {
		return name.Tag{}, fmt.Errorf("reading the name of the image: %w", err)
	}
	tag := strings.Map(func(r rune) rune {
		if strings.ContainsRune("._-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
	// Without a default registry, the tag stays as it is written in the file.
	return name.NewTag(strings.TrimSpace(string(text))+":"+tag, name.WithDefaultRegistry(""))
}

// Build writes the files and returns their paths. The same input gives the same bytes.
func Build(in *Input) (paths []string, err error) {
	tag, err := Name(in.Root, in.Version)
	if err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp("", "freshet-image-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := os.MkdirAll(in.Dist, 0o755); err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	index = mutate.Annotations(index, in.labels()).(v1.ImageIndex)
	for _, binary := range in.Binaries {
		img, err := in.image(binary, stage)
		if err != nil {
			return nil, fmt.Errorf("building the image for %s: %w", binary.Arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: binary.Arch},
		}})
		path := filepath.Join(in.Dist, "freshet_"+in.Version+"_linux_"+binary.Arch+".docker.tar")
		if err := tarball.WriteToFile(path, tag, img); err != nil {
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
		paths = append(paths, path)
	}
	folder, err := layout.Write(filepath.Join(stage, "layout"), empty.Index)
	if err != nil {
		return nil, err
	}
	reference := map[string]string{"org.opencontainers.image.ref.name": tag.TagStr()}
	if err := folder.AppendIndex(index, layout.WithAnnotations(reference)); err != nil {
		return nil, fmt.Errorf("writing the OCI layout: %w", err)
	}
	path := filepath.Join(in.Dist, "freshet_"+in.Version+"_linux.oci.tar")
	return append(paths, path), packFolder(string(folder), path, in.Time)
}

// labels describe the image. There is no label for addresses, because only the publisher of the image knows them.
func (in *Input) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Freshet",
		"org.opencontainers.image.description": "Streaming cloud in one program: HTTP messages, Kafka protocol, schema registry",
		"org.opencontainers.image.version":     in.Version,
		"org.opencontainers.image.revision":    in.Commit,
		"org.opencontainers.image.created":     in.Time.UTC().Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

func (in *Input) image(binary Binary, stage string) (v1.Image, error) {
	base, err := in.baseLayer(binary, filepath.Join(stage, binary.Arch+"-base.tar"))
	if err != nil {
		return nil, err
	}
	program, err := in.programLayer(binary, filepath.Join(stage, binary.Arch+"-program.tar"))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: in.Time.UTC()}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "folders and certificate authorities"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: created, CreatedBy: "the program"}},
	)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = created, "linux", binary.Arch
	config.Config = in.config()
	return mutate.ConfigFile(img, config)
}

// config is how the image runs. Arguments after the image's name replace Cmd, so that settings of a
// file are not hidden by defaults. The health check uses the port of the metrics, because it works
// with every certificate and every base URL.
func (in *Input) config() v1.Config {
	return v1.Config{
		User:       user,
		Entrypoint: []string{"/freshet"},
		Cmd: []string{
			"serve", "--http", "off", "--https", "0.0.0.0:8443", "--stream", "off", "--stream-tls", "0.0.0.0:9093",
			"--ops", "0.0.0.0:8081",
		},
		Env:          []string{"PATH=/", "FRESHET_DATA_DIR=" + dataFolder},
		WorkingDir:   dataFolder,
		Volumes:      map[string]struct{}{dataFolder: {}},
		ExposedPorts: map[string]struct{}{"8443/tcp": {}, "9093/tcp": {}, "8081/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels:       in.labels(),
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/freshet", "health", "--server", "http://127.0.0.1:8081"},
			Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
	}
}
