package packages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/goreleaser/nfpm/v2/files"
)

// Paths of the installed program and of its data, also in the unit.
const (
	program       = "/usr/bin/freshet"
	configuration = "/etc/freshet/freshet.yaml"
	dataFolder    = "/var/lib/freshet"
	backupFolder  = "/var/backups/freshet"
	docFolder     = "/usr/share/doc/freshet/"
	account       = "freshet"
)

// Unit returns the systemd unit of the packages: what this command prints, from the same template:
//
//	freshet generate systemd --binary /usr/bin/freshet --config /etc/freshet/freshet.yaml --user freshet \
//	  --backup-dir /var/backups/freshet
func Unit(root string) ([]byte, error) {
	path := filepath.Join(root, "internal", "cli", "generatecmd", "templates", "freshet.service")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the unit's template: %w", err)
	}
	t, err := template.New("freshet.service").Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var unit bytes.Buffer
	err = t.Execute(&unit, struct{ Binary, Config, User, BackupDir, TLSCert, TLSKey string }{
		Binary: program, Config: configuration, User: account, BackupDir: backupFolder,
	})
	return unit.Bytes(), err
}

// collect adds all files and folders of the package.
func (b *builder) collect() error {
	unit, err := Unit(b.Root)
	if err != nil {
		return err
	}
	settings, err := sources.ReadFile("freshet.yaml")
	if err != nil {
		return err
	}
	copyright, err := b.copyright()
	if err != nil {
		return err
	}
	changes, err := os.ReadFile(filepath.Join(b.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	b.add(b.Binary, program, "", &files.ContentFileInfo{Mode: 0o755})
	b.add("", "/etc/freshet", files.TypeDir, &files.ContentFileInfo{Mode: 0o750, Group: account})
	b.add("", dataFolder, files.TypeDir, &files.ContentFileInfo{Mode: 0o700, Owner: account, Group: account})
	b.add("", backupFolder, files.TypeDir, &files.ContentFileInfo{Mode: 0o700, Owner: account, Group: account})
	return errors.Join(
		b.addText(settings, configuration, files.TypeConfigNoReplace,
			&files.ContentFileInfo{Mode: 0o640, Group: account}),
		b.addText(unit, "/usr/lib/systemd/system/freshet.service", "", nil),
		b.addText(copyright, docFolder+"copyright", "", nil),
		b.addCompressed(changes, docFolder+"changelog.gz"),
		b.addManPages(), b.addCompletions(),
	)
}

// copyright returns the licence of the program and those of everything that it links.
func (b *builder) copyright() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(b.Root, "LICENSE"))
	if err != nil || b.Notices == "" {
		return text, err
	}
	notices, err := os.ReadFile(b.Notices)
	return append(append(text, '\n'), notices...), err
}

func (b *builder) addManPages() error {
	if b.ManPages == "" {
		return nil
	}
	pages, err := filepath.Glob(filepath.Join(b.ManPages, "*.1"))
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		return fmt.Errorf("folder %s has no man pages", b.ManPages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if err := b.addCompressed(text, "/usr/share/man/man1/"+filepath.Base(page)+".gz"); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addCompletions() error {
	if b.Completions == "" {
		return nil
	}
	zsh := "/usr/share/zsh/vendor-completions/_freshet"
	if b.format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_freshet"
	}
	for name, path := range map[string]string{
		"freshet.bash": "/usr/share/bash-completion/completions/freshet",
		"_freshet":     zsh,
		"freshet.fish": "/usr/share/fish/vendor_completions.d/freshet.fish",
	} {
		text, err := os.ReadFile(filepath.Join(b.Completions, name))
		if err != nil {
			return err
		}
		if err := b.addText(text, path, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// addCompressed adds a text that is compressed without a name and a time.
func (b *builder) addCompressed(text []byte, path string) error {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return b.addText(out.Bytes(), path, "", nil)
}

// addText adds a file with this content.
func (b *builder) addText(text []byte, path, kind string, info *files.ContentFileInfo) error {
	source, err := b.write(strings.ReplaceAll(path, "/", "-"), text)
	if err != nil {
		return err
	}
	b.add(source, path, kind, info)
	return nil
}

// add adds a file or a folder. Files belong to root and everybody may read them, if info does not differ.
func (b *builder) add(source, path, kind string, info *files.ContentFileInfo) {
	if info == nil {
		info = &files.ContentFileInfo{Mode: 0o644}
	}
	info.Owner, info.Group = cmp.Or(info.Owner, "root"), cmp.Or(info.Group, "root")
	info.MTime = b.Time
	b.contents = append(b.contents, &files.Content{Source: source, Destination: path, Type: kind, FileInfo: info})
}

// write writes a file to the stage and returns its path.
func (b *builder) write(name string, text []byte) (string, error) {
	path := filepath.Join(b.stage, name)
	return path, os.WriteFile(path, text, 0o600)
}
