package docsite

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"freshet/api/openapi"
)

//go:embed static
var static embed.FS

// Site is the documentation: the pages and all other files. Locations and paths of files are relative
// to the root of the site.
type Site struct {
	pages    map[string]*page // by source
	sections []*section       // every page once
	files    map[string]file  // by location
	sources  map[string]string
	layout   *template.Template
}

// file is a file of the site. It returns the content.
type file func() ([]byte, error)

// The files that do not belong to a page.
const (
	locationIcon   = "-/icon.svg"
	locationIndex  = "-/search.json"
	locationScript = "-/docs.js"
	locationStyle  = "-/docs.css"
	locationLLMs   = "llms.txt"
)

// New reads the titles of the pages and prepares all files. It returns an error if a page is in no
// section or has no title.
func New(source fs.FS) (*Site, error) {
	s := &Site{pages: map[string]*page{}, files: map[string]file{}, sources: map[string]string{}}
	layout, err := template.ParseFS(static, "static/page.html")
	if err != nil {
		return nil, fmt.Errorf("reading the template of the pages: %w", err)
	}
	s.layout = layout
	if err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) == ".go" {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		return s.add(name, text)
	}); err != nil {
		return nil, err
	}
	for _, name := range openapi.Surfaces() {
		s.addFile("api/openapi/"+name+".yaml", "openapi/"+name+".yaml", openapi.Document(name))
	}
	for _, name := range []string{locationIcon, locationScript, locationStyle} {
		s.files[name] = func() ([]byte, error) { return static.ReadFile("static/" + path.Base(name)) }
	}
	s.files[locationIndex] = s.searchIndex
	s.files[locationLLMs] = s.listForModels
	return s, s.arrange()
}

// add adds a page, or a file beside the pages.
func (s *Site) add(name string, text []byte) error {
	if path.Ext(name) != ".md" {
		s.addFile(name, strings.TrimPrefix(name, docsFolder), text)
		return nil
	}
	p, err := newPage(name, text)
	if err != nil {
		return err
	}
	s.pages[name] = p
	s.addFile("", p.markdown, text)
	s.files[p.location] = func() ([]byte, error) { return s.renderPage(p) }
	return nil
}

// addFile adds a file with a fixed content. source is its path in the repository, for links, or "".
func (s *Site) addFile(source, location string, content []byte) {
	s.files[location] = func() ([]byte, error) { return content, nil }
	if source != "" {
		s.sources[source] = location
	}
}

// Locations returns the locations of all files.
func (s *Site) Locations() []string { return slices.Sorted(maps.Keys(s.files)) }

// layoutData is the data of the template page.html.
type layoutData struct {
	Title, Section, Description string
	Base                        string // relative URL of the root of the site
	Markdown                    string // relative URL of the page's source
	Home                        bool
	Content                     template.HTML
	Contents                    []heading
	Navigation                  []navSection
	Previous, Next              *navLink
	Script, Style, Icon         string
	Index                       string
}

// renderPage returns the HTML of a page.
func (s *Site) renderPage(p *page) ([]byte, error) {
	doc, err := s.parse(p)
	if err != nil {
		return nil, err
	}
	content, err := doc.html()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.source, err)
	}
	previous, next := s.neighbours(p)
	data := layoutData{
		Title: p.title, Section: p.section.title, Description: doc.summary(),
		Base: p.relative(""), Markdown: path.Base(p.markdown), Home: p.source == homePage,
		Content:  template.HTML(content), //nolint:gosec // goldmark escapes the text, and parse rejects other HTML
		Contents: doc.contents(), Navigation: s.navigation(p), Previous: previous, Next: next,
		Script: p.relative(locationScript), Style: p.relative(locationStyle), Icon: p.relative(locationIcon),
		Index: p.relative(locationIndex),
	}
	var b bytes.Buffer
	if err := s.layout.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("%s: %w", p.source, err)
	}
	return b.Bytes(), nil
}

// Write writes all files to a directory, which it creates. Files of an earlier version that are no longer
// part of the site stay.
func (s *Site) Write(directory string) error {
	for _, location := range s.Locations() {
		content, err := s.files[location]()
		if err != nil {
			return err
		}
		name := filepath.Join(directory, filepath.FromSlash(location))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // documentation is world-readable
			return fmt.Errorf("writing the site: %w", err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // world-readable
			return fmt.Errorf("writing the site: %w", err)
		}
	}
	return nil
}
