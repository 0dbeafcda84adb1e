package packages_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"freshet/tools/release/packages"
)

// TestReproducible checks that two builds of a package from files with other times give the same bytes, and
// that another program gives others.
func TestReproducible(t *testing.T) {
	t.Parallel()
	for _, format := range packages.Formats {
		for _, arch := range []string{"amd64", "arm64"} {
			t.Run(format+" "+arch, func(t *testing.T) {
				t.Parallel()
				first := build(t, format, arch, "program", time.Unix(1_000_000, 0))
				if again := build(t, format, arch, "program", time.Unix(2_000_000, 0)); !bytes.Equal(first, again) {
					t.Error("two builds differ")
				}
				if other := build(t, format, arch, "other", time.Unix(1_000_000, 0)); bytes.Equal(first, other) {
					t.Error("packages of two programs are equal")
				}
			})
		}
	}
}

// build returns a package of a program whose file has this content and time.
func build(t *testing.T, format, arch, program string, modified time.Time) []byte {
	t.Helper()
	folder := t.TempDir()
	binary := filepath.Join(folder, "freshet")
	if err := os.WriteFile(binary, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(binary, modified, modified); err != nil {
		t.Fatal(err)
	}
	path, err := packages.Package(&packages.Input{
		Binary: binary, Version: "1.2.3-rc.1", Arch: arch, Time: time.Unix(1_700_000_000, 0).UTC(),
		Root: "../../..", Dist: folder,
	}, format)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
