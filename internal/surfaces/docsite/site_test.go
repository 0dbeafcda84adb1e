package docsite

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"freshet"
)

// htmlPage is a rendered page: its anchors and the URLs of its links and files.
type htmlPage struct {
	anchors map[string]bool
	twice   []string // anchors that the page has more than once
	links   []string
	nav     []string // the links of the navigation
}

func parseHTML(t *testing.T, content []byte) *htmlPage {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	p := &htmlPage{anchors: map[string]bool{}}
	inNavigation := false
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				if p.anchors[a.Val] {
					p.twice = append(p.twice, a.Val)
				}
				p.anchors[a.Val] = true
			case "href", "src", "data-index":
				if p.links = append(p.links, a.Val); inNavigation {
					p.nav = append(p.nav, a.Val)
				}
			}
		}
		outside := !inNavigation
		inNavigation = inNavigation || slices.Contains(n.Attr, html.Attribute{Key: "id", Val: "site-pages"})
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		inNavigation = inNavigation && !outside
	}
	walk(root)
	return p
}

// renderAll renders all pages of the embedded site, once for all tests.
var renderAll = sync.OnceValues(func() (map[string][]byte, error) {
	site, err := Embedded()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	for _, p := range site.pages {
		if pages[p.location], err = site.renderPage(p); err != nil {
			return nil, err
		}
	}
	return pages, nil
})

// rendered returns the embedded site and its HTML pages by location.
func rendered(t *testing.T) (*Site, map[string][]byte) {
	t.Helper()
	site, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := renderAll()
	if err != nil {
		t.Fatal(err)
	}
	return site, pages
}

// parseAll parses the pages.
func parseAll(t *testing.T, contents map[string][]byte) map[string]*htmlPage {
	t.Helper()
	pages := map[string]*htmlPage{}
	for location, content := range contents {
		pages[location] = parseHTML(t, content)
	}
	return pages
}

// resolve returns the location and the anchor that a link of a page leads to; ok is false for other sites.
func resolve(t *testing.T, from, link string) (location, anchor string, ok bool) {
	t.Helper()
	base, err := url.Parse("http://site/docs/" + from)
	if err != nil {
		t.Fatal(err)
	}
	u, err := base.Parse(link)
	if err != nil || u.Host != "site" {
		return "", "", false
	}
	location = strings.TrimPrefix(u.Path, "/docs/")
	if location == "" || strings.HasSuffix(location, "/") {
		location += "index.html"
	}
	return location, u.Fragment, true
}

// deadLinks returns the links of the pages to files and anchors that do not exist.
func deadLinks(t *testing.T, site *Site, pages map[string]*htmlPage) (dead []string) {
	t.Helper()
	for from, p := range pages {
		for _, link := range p.links {
			location, anchor, ok := resolve(t, from, link)
			if !ok {
				continue
			}
			if site.files[location] == nil {
				dead = append(dead, from+" links to "+link+": there is no "+location)
			} else if to := pages[location]; anchor != "" && (to == nil || !to.anchors[anchor]) {
				dead = append(dead, from+" links to "+link+": "+location+" does not have the anchor")
			}
		}
	}
	return dead
}

// TestNoDeadLinks checks the links of all pages of the site, and that no page has an anchor twice.
func TestNoDeadLinks(t *testing.T) {
	t.Parallel()
	site, contents := rendered(t)
	pages := parseAll(t, contents)
	for _, problem := range deadLinks(t, site, pages) {
		t.Error(problem)
	}
	links := 0
	for location, p := range pages {
		links += len(p.links)
		if len(p.twice) > 0 {
			t.Errorf("%s has these anchors more than once: %q", location, p.twice)
		}
		for _, link := range p.links {
			if strings.HasPrefix(link, "/") {
				t.Errorf("%s has the absolute link %s; the site must work below any path", location, link)
			}
		}
	}
	if len(pages) < 100 || links < 5000 {
		t.Errorf("checked %d links of %d pages, want at least 5000 and 100", links, len(pages))
	}
}

// TestEveryPageIsInTheNavigation checks that the site has every page of the repository, in one section,
// and that the navigation leads to it from the home page in two steps.
func TestEveryPageIsInTheNavigation(t *testing.T) {
	t.Parallel()
	site, contents := rendered(t)
	pages := parseAll(t, contents)
	reached := map[string]bool{"index.html": true}
	follow := func(from string) {
		for _, link := range pages[from].nav {
			if location, _, ok := resolve(t, from, link); ok {
				reached[location] = true
			}
		}
	}
	follow("index.html")
	for _, location := range slices.Collect(maps.Keys(reached)) {
		follow(location)
	}
	sections := map[*page]int{}
	for _, sec := range site.sections {
		if len(sec.pages) == 0 {
			t.Errorf("section %s has no page", sec.title)
		}
		for _, p := range sec.pages {
			sections[p]++
		}
	}
	count := 0
	err := filepath.WalkDir("../../../docs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		count++
		source := strings.TrimPrefix(filepath.ToSlash(name), "../../../")
		p := site.pages[source]
		if p == nil {
			t.Errorf("site does not have %s", source)
			return nil
		}
		if sections[p] != 1 {
			t.Errorf("%s is in %d sections, want 1", source, sections[p])
		}
		if !reached[p.location] {
			t.Errorf("navigation does not lead to %s", p.location)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := count + len(projectPages); len(site.pages) != want {
		t.Errorf("site has %d pages, want %d", len(site.pages), want)
	}
}

// small returns a site with a home page and some others.
func small(t *testing.T, pages map[string]string) (*Site, error) {
	t.Helper()
	const home = "# Home\n\nUse it:\n- [b](howto/b.md)\n- [a](howto/a.md)\n"
	source := fstest.MapFS{homePage: {Data: []byte(home)}}
	for name, text := range pages {
		source[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return New(source)
}

func TestRendering(t *testing.T) {
	t.Parallel()
	site, err := small(t, map[string]string{
		"docs/howto/a.md": "<!-- generated -->\n\n# The `a`\n\n## Twice\n\n## Twice\n\n<a id=\"k1\"></a>\n## K1\n\n" +
			"[b](b.md#here) [home](../README.md) [spec](../spec) [read me](../../README.md#x) [code](../../main.go) " +
			"[document](../../api/openapi/messages.yaml) [web](https://example.org/a?b&c)\n\n" +
			"```sh\necho \"<a>\" | cat\n```\n\n| x |\n|---|\n| `1` |\n\n![picture](a.svg)\n",
		"docs/howto/a.svg":    "<svg/>",
		"docs/howto/b.md":     "# B\n\nThe text of b.\n",
		"docs/spec/README.md": "# Specifications\n",
		"README.md":           "# Freshet\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := site.files["howto/a.html"]()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"title":               "<title>The a · Freshet</title>",
		"page":                `<a href="../howto/b.html#here">b</a>`,
		"home":                `<a href="../">home</a>`,
		"folder":              `<a href="../spec/">spec</a>`,
		"page outside docs":   `<a href="../project/#x">read me</a>`,
		"source code":         `<span class="source" title="In the source code: main.go">code</span>`,
		"document":            `<a href="../openapi/messages.yaml">document</a>`,
		"other site":          `<a href="https://example.org/a?b&amp;c">web</a>`,
		"first anchor":        `<h2 id="twice">`,
		"second anchor":       `<h2 id="twice-1">`,
		"own anchor":          `<a id="k1"></a>`,
		"heading with its id": `<h2>K1</h2>`,
		"code":                `aria-label="Code (sh)"><code>echo &quot;&lt;a&gt;&quot; | cat` + "\n</code>",
		"table":               `<div class="table" tabindex="0" role="region" aria-label="Table"><table>`,
		"image":               `<img src="../howto/a.svg" alt="picture">`,
		"Markdown":            `<a class="raw" href="a.md">`,
		"current page":        `<a href="../howto/a.html" aria-current="page">The a</a>`,
		"label":               "<h3>Use it</h3>",
		"neighbour":           `<a rel="prev" href="../howto/b.html">← B</a>`,
	} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("%s: page does not contain %s", name, want)
		}
	}
	if t.Failed() {
		t.Logf("%s", content)
	}
}

func TestPagesThatAreRejected(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, text, want string }{
		"no title":        {"docs/howto/x.md", "Text\n", "docs/howto/x.md does not begin with a title"},
		"no section":      {"docs/misc/x.md", "# X\n", "docs/misc/x.md is in no section"},
		"a script":        {"docs/howto/x.md", "# X\n\n<script>alert(1)</script>\n", "does not support"},
		"an attribute":    {"docs/howto/x.md", "# X\n\nSome <a id=\"x\" onclick=\"y\">text</a>.\n", "does not support"},
		"no such picture": {"docs/howto/x.md", "# X\n\n![x](x.png)\n", "docs/howto/x.md shows an image"},
	} {
		site, err := small(t, map[string]string{tc.source: tc.text})
		if err == nil {
			_, err = site.files["howto/x.html"]()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}

// TestDeadLinksAreFound proves that TestNoDeadLinks can fail.
func TestDeadLinksAreFound(t *testing.T) {
	t.Parallel()
	site, err := small(t, map[string]string{"docs/howto/a.md": "# A\n\n[a](#nowhere) [b](../README.md#nothing)\n"})
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{}
	for _, location := range []string{"howto/a.html", "index.html"} {
		if contents[location], err = site.files[location](); err != nil {
			t.Fatal(err)
		}
	}
	pages := parseAll(t, contents)
	if dead := deadLinks(t, site, pages); len(dead) != 2 {
		t.Errorf("got %q, want two dead links", dead)
	}
}

// TestWrite checks that the directory has every file of the site.
func TestWrite(t *testing.T) {
	t.Parallel()
	site, err := New(freshet.Pages)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "dist", "site")
	if err := site.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, location := range site.Locations() {
		got, err := os.ReadFile(filepath.Join(dir, location))
		if err != nil || len(got) == 0 {
			t.Errorf("%s: got %d bytes and error %v", location, len(got), err)
		}
	}
	for source, p := range site.pages {
		want, err := os.ReadFile(filepath.Join("../../..", source))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, p.markdown)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: Markdown beside the page differs from %s (error %v)", p.location, source, err)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, "llms.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range site.pages {
		if !bytes.Contains(list, []byte("]("+p.markdown+")")) {
			t.Errorf("llms.txt does not list %s", p.markdown)
		}
	}
}

// TestEveryPageIsFoundByItsTitle checks that the search index has each page under all terms of its title.
func TestEveryPageIsFoundByItsTitle(t *testing.T) {
	t.Parallel()
	site, _ := rendered(t)
	content, err := site.searchIndex()
	if err != nil {
		t.Fatal(err)
	}
	var got index
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pages) != len(site.pages) {
		t.Errorf("index has %d pages, want %d", len(got.Pages), len(site.pages))
	}
	postings := map[string]map[int]int{} // weights by term and part
	for t, list := range got.Terms {
		postings[t] = map[int]int{}
		part := 0
		for _, n := range list {
			part += n / 4
			postings[t][part] = n % 4
		}
	}
	first := map[string]bool{} // pages whose first part was seen
	for part := range len(got.Parts) / 4 {
		number, _ := got.Parts[4*part].(float64)
		p := got.Pages[int(number)]
		if first[p[0]] {
			continue
		}
		first[p[0]] = true
		for _, word := range terms(p[1]) {
			if postings[word][part] != weightTitle {
				t.Errorf("%s: term %q has weight %d, want that of the title", p[0], word, postings[word][part])
			}
		}
	}
	if len(first) != len(site.pages) {
		t.Errorf("index has parts of %d pages, want %d", len(first), len(site.pages))
	}
	if !slices.IsSorted(stopWords) {
		t.Error("stopWords is not sorted, but terms searches it as a sorted list")
	}
}
