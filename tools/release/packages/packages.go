// Package packages builds the deb and rpm packages of a server: the program, its systemd unit, a
// configuration that upgrades keep, man pages, completions, and the scripts that create the system
// user and restart the service. The unit is the one of `freshet generate systemd`, from the same template.
//
// It compiles nothing and signs nothing; SHA256SUMS, which is signed, covers its files.
package packages

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// Formats are the formats of packages.
var Formats = []string{"deb", "rpm"}

// Input is what a package is made of.
type Input struct {
	Binary      string    // path of the program
	Version     string    // semantic version without a v
	Arch        string    // amd64 or arm64
	Time        time.Time // time stamp of all files
	Root        string    // folder of the repository: unit template, licence, changes
	ManPages    string    // folder of the man pages of commands; "" for none
	Completions string    // folder with freshet.bash, _freshet and freshet.fish; "" for none
	Notices     string    // licences of third parties; "" for none
	Dist        string    // folder of the package
}

// Name returns the file name of a package.
func (in *Input) Name(format string) string {
	return "freshet_" + in.Version + "_linux_" + in.Arch + "." + format
}

//go:embed freshet.yaml deb rpm
var sources embed.FS

// Package writes the package in one of the Formats and returns its path. The same input gives the same bytes.
func Package(in *Input, format string) (path string, err error) {
	stage, err := os.MkdirTemp("", "freshet-package-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	b := &builder{Input: in, format: format, stage: stage}
	info, err := b.info()
	if err != nil {
		return "", fmt.Errorf("collecting the files of the %s package: %w", format, err)
	}
	info = nfpm.WithDefaults(info) // also splits the version, so that a release candidate sorts before its release
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", fmt.Errorf("preparing the %s package: %w", format, err)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(in.Dist, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(in.Dist, in.Name(format))
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
		return "", fmt.Errorf("writing the package: %w", errors.Join(err, os.Remove(path)))
	}
	return path, nil
}

// builder collects the files of one package.
type builder struct {
	*Input
	format, stage string
	contents      files.Contents
}

const description = `streaming cloud in one program
 Freshet serves topics over HTTP and over the Kafka protocol, a schema registry
 and a Kubernetes-style resource API, on one server or as an ensemble of three.`

func (b *builder) info() (*nfpm.Info, error) {
	if err := b.collect(); err != nil {
		return nil, err
	}
	info := &nfpm.Info{
		Name: "freshet", Arch: b.Arch, Platform: "linux", Version: b.Version, VersionSchema: "semver", Release: "1",
		Section: "net", Priority: "optional", Maintainer: "The Freshet authors <root@localhost>", License: "Apache-2.0",
		Description: description, MTime: b.Time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents:   b.contents,
			Recommends: []string{"ca-certificates"},
			Deb:        nfpm.Deb{Compression: "zstd"},
			RPM: nfpm.RPM{
				Compression: "zstd", BuildHost: "localhost", Summary: "Streaming cloud in one program",
				Group: "System Environment/Daemons",
			},
		},
	}
	if b.format == "deb" {
		info.Depends = []string{"adduser", "init-system-helpers (>= 1.54)"}
	} else {
		info.Depends = []string{"shadow-utils"}
		info.Description = strings.ReplaceAll(description, "\n ", "\n")
	}
	var err error
	info.Scripts, err = b.scripts()
	return info, err
}

func (b *builder) scripts() (s nfpm.Scripts, err error) {
	names := map[string]*string{
		"postinst": &s.PostInstall, "prerm": &s.PreRemove, "postrm": &s.PostRemove,
	}
	if b.format == "rpm" {
		names = map[string]*string{
			"pre": &s.PreInstall, "post": &s.PostInstall, "preun": &s.PreRemove, "postun": &s.PostRemove,
		}
	}
	for name, path := range names {
		text, err := sources.ReadFile(b.format + "/" + name)
		if err != nil {
			return s, err
		}
		if *path, err = b.write("script-"+name, text); err != nil {
			return s, err
		}
	}
	return s, nil
}
