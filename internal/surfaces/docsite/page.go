package docsite

import (
	"fmt"
	"path"
	"strings"
)

// docsFolder is the folder of the pages in the repository. It is the root of the site.
const docsFolder = "docs/"

// homePage is the first page of the site. The order of its links is the order of the navigation.
const homePage = docsFolder + "README.md"

// page is a Markdown file of the repository.
type page struct {
	source   string // path in the repository
	location string // path of the HTML page in the site
	markdown string // path of the Markdown in the site
	title    string
	text     []byte
	section  *section
	folder   string // the folder of the page, if it has an index page
	label    string // the label of the page's list on the home page, or ""
}

// projectPages are the pages at the root of the repository, with their folder in sectionFolders.
// A title replaces the page's own one in the navigation.
var projectPages = map[string]struct{ folder, title string }{
	"README.md":       {"tutorial", "The first five minutes"},
	"SECURITY.md":     {"reference", ""},
	"CHANGELOG.md":    {"reference", ""},
	"CONTRIBUTING.md": {"explanation", ""},
}

func newPage(source string, text []byte) (*page, error) {
	p := &page{source: source, text: text}
	if inDocs, ok := strings.CutPrefix(source, docsFolder); ok {
		p.markdown = inDocs
	} else {
		p.markdown = "project/" + source // the root of the site has a README already
	}
	folder, name := path.Split(p.markdown)
	name = strings.TrimSuffix(name, ".md")
	if name == "README" {
		name = "index"
	}
	p.location = folder + name + ".html"
	if !strings.HasPrefix(source, docsFolder) {
		p.location = strings.ToLower(p.location)
	}
	if p.title = titleOf(text); p.title == "" {
		return nil, fmt.Errorf("%s does not begin with a title; add a line such as \"# Title\"", source)
	}
	if project := projectPages[source]; project.title != "" {
		p.title = project.title
	}
	return p, nil
}

// titleOf returns the heading at the beginning of a page, or "". Only a comment may be before it.
func titleOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "<!--") {
			continue
		}
		title, ok := strings.CutPrefix(line, "# ")
		if !ok {
			return ""
		}
		return strings.ReplaceAll(strings.TrimSpace(title), "`", "")
	}
	return ""
}

// relative returns the URL of a location, relative to the page.
func (p *page) relative(location string) string {
	up := strings.Repeat("../", strings.Count(p.location, "/"))
	if url := up + shorten(location); url != "" {
		return url
	}
	return "./"
}

// shorten removes the name of an index page from a location.
func shorten(location string) string {
	if folder, name := path.Split(location); name == "index.html" {
		return folder
	}
	return location
}
