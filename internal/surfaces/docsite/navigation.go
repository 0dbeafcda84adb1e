package docsite

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// section is one of the four parts of the documentation. A reader looks into one of them: to
// learn, to do something, to look something up, or to understand.
type section struct {
	title string
	pages []*page // in the order of the navigation
}

// sectionFolders maps the folders of docs to the titles of their sections, in the order of the
// navigation. A page belongs to the section of its folder or of the nearest folder above it.
var sectionFolders = []struct {
	title   string
	folders []string
}{
	{"Tutorial", []string{"tutorial"}},
	{"How to", []string{"howto"}},
	{"Reference", []string{"reference", "spec"}},
	{"Explanation", []string{".", "explanation", "adr"}}, // "." are the pages directly in docs
}

// tutorialPage is the page of the tutorial, which consists of one page and so has no folder.
const tutorialPage = docsFolder + "tutorial.md"

// arrange distributes the pages to the sections and orders them.
func (s *Site) arrange() error {
	for _, f := range sectionFolders {
		s.sections = append(s.sections, &section{title: f.title})
	}
	home := s.pages[homePage]
	if home == nil {
		return fmt.Errorf("%s is missing; it is the first page of the site", homePage)
	}
	listed := s.homeLinks(home)
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		p := s.pages[source]
		n := sectionOf(p)
		if n < 0 {
			return fmt.Errorf("%s is in no section of the documentation; move it to docs/tutorial, docs/howto, "+
				"docs/reference or docs/explanation", source)
		}
		p.section = s.sections[n]
		p.section.pages = append(p.section.pages, p)
		folder := path.Dir(source)
		if strings.HasPrefix(folder, docsFolder) && s.pages[folder+"/README.md"] != nil {
			p.folder = folder
		} else {
			p.label = listed[source].label
		}
	}
	for _, sec := range s.sections {
		slices.SortStableFunc(sec.pages, func(a, b *page) int {
			return cmp.Or(cmp.Compare(s.rank(a, listed), s.rank(b, listed)), cmp.Compare(isNotIndex(a), isNotIndex(b)))
		})
	}
	return nil
}

// listedPage is a link of the home page: its position, and the label of its list.
type listedPage struct {
	rank  int
	label string
}

// homeLinks returns the pages that the home page links to, by source. A paragraph that ends with a
// colon is the label of the list after it.
func (s *Site) homeLinks(home *page) map[string]listedPage {
	listed := map[string]listedPage{}
	label := ""
	root := markdown.Parser().Parse(text.NewReader(home.text))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Kind() == ast.KindParagraph {
			text, ok := strings.CutSuffix(plain(n, home.text), ":")
			if label = ""; ok {
				label = text
			}
		}
		if link, ok := n.(*ast.Link); ok {
			target, _, _ := strings.Cut(string(link.Destination), "#")
			source := path.Join(path.Dir(home.source), target)
			if _, twice := listed[source]; !twice {
				listed[source] = listedPage{rank: len(listed) + 1, label: label}
			}
		}
		return ast.WalkContinue, nil
	})
	return listed
}

// sectionOf returns the number of a page's section, or -1.
func sectionOf(p *page) int {
	folder := path.Dir(strings.TrimPrefix(p.source, docsFolder))
	if p.source == tutorialPage {
		folder = "tutorial"
	}
	if project, ok := projectPages[p.source]; ok {
		folder = project.folder
	}
	for {
		for i, f := range sectionFolders {
			if slices.Contains(f.folders, folder) {
				return i
			}
		}
		if !strings.Contains(folder, "/") {
			return -1
		}
		folder = path.Dir(folder)
	}
}

// rank returns the place of a page in its section. The pages of a folder with an index page have one
// rank, that of the index page.
func (s *Site) rank(p *page, listed map[string]listedPage) int {
	source := p.source
	switch {
	case source == homePage:
		return 0
	case p.folder != "":
		source = p.folder + "/README.md"
	}
	if l, ok := listed[source]; ok {
		return l.rank
	}
	return len(listed) + 1 // a page that the home page does not list is last
}

// isNotIndex returns 0 for the index page of a folder and 1 for other pages.
func isNotIndex(p *page) int {
	if path.Base(p.source) == "README.md" {
		return 0
	}
	return 1
}

// navSection, navList and navLink are what the template shows of the navigation.
type navSection struct {
	Title string
	Lists []*navList
}

type navList struct {
	Label string // or ""
	Links []navLink
}

type navLink struct {
	Title, URL string
	Current    bool
	Inner      bool // a page of a folder, below its index page
}

// navigation returns the links that a page shows. Of a folder with an index page it has only the
// index page, unless the page is in that folder.
func (s *Site) navigation(current *page) []navSection {
	var list []navSection
	for _, sec := range s.sections {
		shown := navSection{Title: sec.title}
		for _, p := range sec.pages {
			inner := p.folder != "" && isNotIndex(p) == 1
			if p.source == homePage || inner && current.folder != p.folder {
				continue
			}
			if n := len(shown.Lists); n == 0 || shown.Lists[n-1].Label != p.label {
				shown.Lists = append(shown.Lists, &navList{Label: p.label})
			}
			list := shown.Lists[len(shown.Lists)-1]
			list.Links = append(list.Links, navLink{
				Title: p.title, URL: current.relative(p.location), Current: p == current, Inner: inner,
			})
		}
		if len(shown.Lists) > 0 {
			list = append(list, shown)
		}
	}
	return list
}

// neighbours returns the pages before and after a page in its section, or nil.
func (s *Site) neighbours(p *page) (previous, next *navLink) {
	if p.source == homePage {
		return nil, nil
	}
	pages := slices.DeleteFunc(slices.Clone(p.section.pages), func(q *page) bool { return q.source == homePage })
	i := slices.Index(pages, p)
	at := func(i int) *navLink {
		if i < 0 || i >= len(pages) {
			return nil
		}
		return &navLink{Title: pages[i].title, URL: p.relative(pages[i].location)}
	}
	return at(i - 1), at(i + 1)
}
