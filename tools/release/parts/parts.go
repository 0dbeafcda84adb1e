// Package parts lists what a program of the release links: the modules of its packages, and their licence
// files. Notices and parts lists (SBOM) are made from it.
package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"freshet/tools/release/binaries"
	"freshet/tools/release/plan"
)

// Module is a module from which a program links a package.
type Module struct {
	Path    string // "std" for the standard library
	Version string
	Sum     string // as in go.sum: h1:…; empty for std
	Texts   []Text
}

// Text is a file with a licence or a notice.
type Text struct {
	Name     string   // relative to the module
	Content  string   // with line feeds, without spaces at the ends of lines
	Licences []string // SPDX identifiers; empty if the text is a notice
}

// licenceFiles matches the names of files with licences and notices.
var licenceFiles = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notices?|patents)([.-].*)?$`)

// minCoverage is the part of a file, in percent, that must be the text of known licences.
const minCoverage = 75

// Of lists the modules that a target's program links, ordered by path, without those of this repository. A module
// without a known licence is an error: nobody may distribute it.
func Of(ctx context.Context, p *plan.Plan, t plan.Target) ([]Module, error) {
	packages, err := list(ctx, p, t)
	if err != nil {
		return nil, err
	}
	modules := map[string]*Module{}
	for _, pkg := range packages {
		path, version, dir, sum := pkg.module()
		if path == "" || strings.HasPrefix(dir, p.Root+string(filepath.Separator)) {
			continue // modules of this repository
		}
		m := modules[path]
		if m == nil {
			m = &Module{Path: path, Version: version, Sum: sum}
			modules[path] = m
		}
		if err := m.collect(dir, pkg.Dir); err != nil {
			return nil, err
		}
	}
	var all []Module
	for _, m := range modules {
		if len(m.Licences()) == 0 {
			return nil, fmt.Errorf("module %s %s has no licence that is known; its files: %v", m.Path, m.Version, m.names())
		}
		slices.SortFunc(m.Texts, func(a, b Text) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// Licences returns the SPDX identifiers of the module's licences, sorted.
func (m *Module) Licences() []string {
	var all []string
	for _, text := range m.Texts {
		all = append(all, text.Licences...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (m *Module) names() (names []string) {
	for _, text := range m.Texts {
		names = append(names, text.Name)
	}
	return names
}

// collect adds the licence files of the folders from a package's up to its module's. A part of a module that
// was taken from elsewhere has a file of its own.
func (m *Module) collect(module, folder string) error {
	for ; ; folder = filepath.Dir(folder) {
		files, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, file := range files {
			if !file.Type().IsRegular() || !licenceFiles.MatchString(file.Name()) || filepath.Ext(file.Name()) == ".go" {
				continue
			}
			if err := m.add(module, filepath.Join(folder, file.Name())); err != nil {
				return err
			}
		}
		if folder == module || len(folder) <= len(module) {
			return nil
		}
	}
}

func (m *Module) add(module, path string) error {
	name, err := filepath.Rel(module, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	if slices.ContainsFunc(m.Texts, func(t Text) bool { return t.Name == name }) {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := Text{Name: name}
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\r\n", "\n")) {
		text.Content += strings.TrimRight(line, " \t\n") + "\n"
	}
	if cover := licensecheck.Scan(data); cover.Percent >= minCoverage {
		for _, match := range cover.Match {
			// The patent grant of Google's modules is no licence, and has no SPDX identifier.
			if !match.IsURL && match.ID != "GooglePatentsFile" {
				text.Licences = append(text.Licences, match.ID)
			}
		}
	}
	m.Texts = append(m.Texts, text)
	return nil
}

// pkg is what go list prints of a package.
type pkg struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir, Sum string
		Main                    bool
		Replace                 *struct{ Path, Version, Dir, Sum string }
	}
	root, goVersion string
}

func (p *pkg) module() (path, version, dir, sum string) {
	m := p.Module
	switch {
	case p.Standard:
		return "std", p.goVersion, p.root, ""
	case m == nil || m.Main:
		return "", "", "", ""
	case m.Replace != nil:
		return m.Replace.Path, m.Replace.Version, m.Replace.Dir, m.Replace.Sum
	}
	return m.Path, m.Version, m.Dir, m.Sum
}

func list(ctx context.Context, p *plan.Plan, t plan.Target) ([]*pkg, error) {
	root, err := run(ctx, p, t, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	env := strings.Fields(string(root))
	out, err := run(ctx, p, t, "list", "-deps", "-tags="+binaries.Tags(t), "-json=ImportPath,Dir,Standard,Module",
		"./cmd/freshet")
	if err != nil {
		return nil, err
	}
	var all []*pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		each := &pkg{root: env[0], goVersion: strings.TrimPrefix(env[1], "go")}
		if err := decoder.Decode(each); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		if each.Dir != "" { // unsafe has none
			all = append(all, each)
		}
	}
}

func run(ctx context.Context, p *plan.Plan, t plan.Target, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.Root, binaries.Environment(t), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s for %s: %w", args[0], t, err)
	}
	return out, nil
}
