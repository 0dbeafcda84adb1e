package image_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"freshet/tools/release/image"
)

// TestReproducible checks that two builds give the same bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	first, second := build(t, time.Unix(1_000_000, 0)), build(t, time.Unix(2_000_000, 0))
	if len(first) != 3 {
		t.Fatalf("got %d files, want one per architecture and the layout", len(first))
	}
	for i := range first {
		a, b := read(t, first[i]), read(t, second[i])
		if !bytes.Equal(a, b) {
			t.Errorf("two builds of %s differ", filepath.Base(first[i]))
		}
	}
}

// TestConfig checks what a container runtime reads.
func TestConfig(t *testing.T) {
	t.Parallel()
	img, err := tarball.ImageFromPath(build(t, time.Unix(0, 0))[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.Architecture != "arm64" || config.OS != "linux" || c.User != "65532:65532" || c.Healthcheck == nil ||
		c.Labels["org.opencontainers.image.version"] != "1.2.3+local" {
		t.Errorf("got %s, %+v", config.Architecture, c)
	}
}

// TestName checks that the tag has no characters that a tag must not have.
func TestName(t *testing.T) {
	t.Parallel()
	tag, err := image.Name("../../..", "1.2.3+local")
	if err != nil || tag.TagStr() != "1.2.3-local" {
		t.Errorf("got %v, %v", tag, err)
	}
}

func build(t *testing.T, modified time.Time) []string {
	t.Helper()
	folder := t.TempDir()
	in := &image.Input{
		Version: "1.2.3+local", Commit: "abc", Time: time.Unix(1_700_000_000, 0), Root: "../../..", Dist: folder,
	}
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(folder, arch)
		if err := os.WriteFile(path, []byte(arch), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
		in.Binaries = append(in.Binaries, image.Binary{Arch: arch, Path: path})
	}
	paths, err := image.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
