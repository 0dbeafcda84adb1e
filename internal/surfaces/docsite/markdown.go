package docsite

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown parses and renders pages. It has no state.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(ownRenderer{}, 100))))

// document is a parsed page, with the links of the site.
type document struct {
	root     ast.Node
	text     []byte
	headings []heading
}

// heading is a heading with the anchor that links to it.
type heading struct {
	Title, Anchor string
	level         int
	node          ast.Node
}

// ownHTML is the HTML that a page may contain: anchors, line breaks and comments. The renderer writes
// it unchanged.
var ownHTML = regexp.MustCompile(`^(?:<a id="[A-Za-z0-9-]+">|</a>|<br>|<!--[^>]*-->|\s)*$`)

var anchorTag = regexp.MustCompile(`<a id="([^"]+)">`)

// parse parses a page and replaces its links by those of the site. It returns an error if the page has
// HTML other than ownHTML.
func (s *Site) parse(p *page) (*document, error) {
	d := &document{root: markdown.Parser().Parse(text.NewReader(p.text)), text: p.text}
	ids := map[string]bool{}
	var problems []error
	err := ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			s.rewrite(p, n, &n.Destination)
		case *ast.Image:
			s.rewrite(p, n, &n.Destination)
			if _, notHere := n.AttributeString(missing); notHere {
				problems = append(problems,
					fmt.Errorf("%s shows an image that is not in docs: %s", p.source, n.Destination))
			}
		case *ast.RawHTML, *ast.HTMLBlock:
			html := rawText(n, p.text)
			if !ownHTML.MatchString(html) {
				problems = append(problems, fmt.Errorf("%s has HTML that the site does not support, use Markdown: %q",
					p.source, html))
			}
			for _, m := range anchorTag.FindAllStringSubmatch(html, -1) {
				ids[m[1]] = true
			}
		case *ast.Heading:
			d.headings = append(d.headings, heading{Title: plain(n, p.text), level: n.Level, node: n})
		}
		return ast.WalkContinue, nil
	})
	d.setAnchors(ids)
	return d, errors.Join(append(problems, err)...)
}

// setAnchors gives each heading the anchor that repository hosts derive from its text. A heading whose
// anchor exists already, as a tag of the page, needs no other one.
func (d *document) setAnchors(ids map[string]bool) {
	count := map[string]int{}
	for i := range d.headings {
		h := &d.headings[i]
		slug := slugOf(h.Title)
		h.Anchor = slug
		if n := count[slug]; n > 0 {
			h.Anchor += "-" + strconv.Itoa(n)
		}
		count[slug]++
		if !ids[h.Anchor] {
			ids[h.Anchor] = true
			h.node.SetAttributeString("id", []byte(h.Anchor))
		}
	}
}

var notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// slugOf returns the anchor of a heading.
func slugOf(title string) string {
	slug := notInSlug.ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(strings.TrimSpace(slug), " ", "-")
}

// missing is the attribute of a link to a file of the repository that is not part of the site.
const missing = "missing"

// rewrite replaces the destination of a link to another file of the repository.
func (s *Site) rewrite(p *page, n ast.Node, destination *[]byte) {
	target, fragment, _ := strings.Cut(string(*destination), "#")
	if u, err := url.Parse(target); err != nil || u.Scheme != "" || target == "" {
		return // an absolute URL, or an anchor of the same page
	}
	name := path.Join(path.Dir(p.source), target)
	location, ok := s.sources[name]
	for _, source := range []string{name, name + "/README.md"} {
		if linked := s.pages[source]; linked != nil {
			location, ok = linked.location, true
		}
	}
	if !ok {
		n.SetAttributeString(missing, []byte(name))
		return
	}
	address := p.relative(location)
	if fragment != "" {
		address += "#" + fragment
	}
	*destination = []byte(address)
}

// html renders the document.
func (d *document) html() ([]byte, error) {
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, d.text, d.root); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// contents returns the headings for the table of contents of a page.
func (d *document) contents() []heading {
	var list []heading
	for _, h := range d.headings {
		if h.level == 2 {
			list = append(list, h)
		}
	}
	return list
}

// summaryLength is the longest description of a page in llms.txt and in its head.
const summaryLength = 200

// summary returns the first sentences of the page.
func (d *document) summary() string {
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindParagraph {
			return excerpt(plain(n, d.text), summaryLength)
		}
	}
	return ""
}

// excerpt returns the beginning of a text, up to the end of a word.
func excerpt(s string, length int) string {
	if len(s) <= length {
		return s
	}
	if end := strings.LastIndexByte(s[:length], ' '); end > 0 {
		return s[:end] + " …"
	}
	return ""
}

// plain returns the text of a node without its markup, on one line.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
				b.WriteByte(' ')
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
