package docsite

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// ownRenderer renders the nodes that differ from goldmark's HTML: links to files that are not part of
// the site, HTML in pages, and code and tables, which may be wider than the screen. A
// scrollable element needs a tabindex, so that the keyboard can scroll it. The functions ignore errors
// of the writer, which keeps the first one for its last Flush.
type ownRenderer struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (ownRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, renderLink)
	r.Register(ast.KindRawHTML, renderHTML)
	r.Register(ast.KindHTMLBlock, renderHTML)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(tables.KindTable, renderTable)
}

func renderLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := n.(*ast.Link)
	if !ok {
		return ast.WalkContinue, nil
	}
	name, notHere := link.AttributeString(missing)
	switch {
	case notHere && entering:
		file, _ := name.([]byte)
		_, _ = fmt.Fprintf(w, `<span class="source" title="In the source code: %s">`, util.EscapeHTML(file))
	case notHere:
		_, _ = w.WriteString("</span>")
	case entering:
		_, _ = fmt.Fprintf(w, `<a href="%s">`, util.EscapeHTML(util.URLEscape(link.Destination, true)))
	default:
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

// rawText returns the HTML of a node.
func rawText(n ast.Node, source []byte) string {
	switch n := n.(type) {
	case *ast.RawHTML:
		return string(n.Segments.Value(source))
	case *ast.HTMLBlock:
		html := string(n.Lines().Value(source))
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(source))
		}
		return html
	}
	return ""
}

// renderHTML writes the HTML of a page, which parse has checked.
func renderHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if html := rawText(n, source); entering && ownHTML.MatchString(html) {
		_, _ = w.WriteString(html)
	}
	return ast.WalkSkipChildren, nil
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	label := "Code"
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		if language := string(fenced.Language(source)); language != "" {
			label += " (" + strings.ToLower(language) + ")"
		}
	}
	_, _ = fmt.Fprintf(w, "<div class=\"code\"><pre tabindex=\"0\" role=\"region\" aria-label=\"%s\"><code>",
		util.EscapeHTML([]byte(label)))
	_, _ = w.Write(util.EscapeHTML(n.Lines().Value(source)))
	_, _ = w.WriteString("</code></pre></div>\n")
	return ast.WalkContinue, nil
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}
