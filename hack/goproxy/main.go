// Command goproxy writes the Go client as a module proxy: a folder that GOPROXY accepts as
// file://FOLDER. `go get` then takes the client from it, without a network and before the
// version has a tag.
//
//	goproxy -version v0.1.0 CLIENT FOLDER
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// modulePath finds the path in a go.mod. Upper case letters are not supported: a proxy escapes them.
	modulePath = regexp.MustCompile(`(?m)^module ([a-z0-9./_-]+)$`)
	semantic   = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9a-z.-]+)?$`)
)

func main() {
	version := flag.String("version", "", "semantic version of the module, such as v0.1.0")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: goproxy -version VERSION CLIENT FOLDER")
		os.Exit(2) //nolint:forbidigo // a command, like those under cmd
	}
	if err := write(flag.Arg(0), *version, flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "goproxy:", err)
		os.Exit(1) //nolint:forbidigo // a command, like those under cmd
	}
}

// write writes the module in a folder to a proxy, in the layout of the GOPROXY protocol: the list
// of versions, and for the version its description, go.mod and archive.
func write(source, version, proxy string) error {
	file, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	found := modulePath.FindSubmatch(file)
	if found == nil {
		return fmt.Errorf("%s/go.mod has no module path of lower case letters", source)
	}
	if !semantic.MatchString(version) {
		return fmt.Errorf("version %q is not a semantic version such as v0.1.0", version)
	}
	path := string(found[1])
	folder := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	content, err := archive(source, path+"@"+version+"/")
	if err != nil {
		return err
	}
	for ending, text := range map[string][]byte{
		".info": fmt.Appendf(nil, `{"Version":%q}`, version), ".mod": file, ".zip": content,
	} {
		if err := os.WriteFile(filepath.Join(folder, version+ending), text, 0o644); err != nil {
			return err
		}
	}
	return addVersion(filepath.Join(folder, "list"), version)
}

// archive returns the files of the module, except those of modules inside it, with a prefix. They have no
// times, so that equal files make equal archives.
func archive(source, prefix string) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != source {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file; a module cannot contain it", name)
		}
		relative, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := w.Create(prefix + filepath.ToSlash(relative))
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		return err
	})
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// addVersion adds a line to the list of versions, if it does not have it.
func addVersion(name, version string) error {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == version {
			return nil
		}
	}
	return os.WriteFile(name, append(text, version+"\n"...), 0o644)
}
