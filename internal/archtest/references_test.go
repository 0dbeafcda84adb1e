package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A reference to the documentation consists of the page and an anchor, such as
// docs/spec/messages.md#m3; a page uses a link, and the console the URL below /docs/. Commands print
// references in errors and hints as URLs. The tests read the files that git lists, so that they
// skip ignored files.

// referringExtensions are the extensions of files that may refer to the documentation.
var referringExtensions = []string{".go", ".md", ".yaml", ".yml", ".txtar", ".inc", ".proto", ".js", ".html", ".sh"}

var (
	reference = regexp.MustCompile(`\bdocs/((?:spec|howto|reference|adr)/[A-Za-z0-9_/-]+)\.(?:md|html)` +
		`(?:#([a-zA-Z0-9_-]+))?`)
	link      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	anchorTag = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	fence     = regexp.MustCompile("(?ms)^```.*?^```")
	wrapped   = regexp.MustCompile(`\s*\n\s*// `)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// inventedPages are folders whose tests have pages that do not exist.
var inventedPages = []string{"internal/surfaces/docsite/", "internal/archtest/"}

// numbered matches references by number only: decisions, sections, specifications. A
// reader without the page cannot resolve them. Sections of an RFC are allowed. The
// pattern is concatenated so that it does not match this file.
var numbered = regexp.MustCompile(strings.Join([]string{
	`\b[Dd]ecision ` + `[A-Z]?[0-9]+\b`,
	`\([RMD]` + `[0-9]{1,2}(?:, [RMD][0-9]{1,2})*\)`,
	`(?:\bRFC [0-9]+,? )?\b[Ss]ection ` + `[0-9]`,
	`\b[Ss]pec ` + `[0-9]\b`,
	`\b[Dd]ocument ` + `[0-9]\b`,
}, "|"))

// bareNumber matches the number of a decision alone. The test searches only comments,
// because code and test data have names of this form.
var bareNumber = regexp.MustCompile(`\b[RMD]` + `[0-9]{1,2}\b`)

// bareNumberAllowed lists files whose comments use such names for other things, with the reason.
var bareNumberAllowed = map[string]string{
	"internal/registry/avro/limits_test.go": "names of generated records",
}

// tracked returns the text of every file of the repository with one of the extensions.
func tracked(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	files := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if !slices.Contains(endings, filepath.Ext(name)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		files[name] = string(text)
	}
	return files
}

// anchorsOf returns the targets of links within a page: its <a id> tags, and the anchors
// that repository hosts derive from its headings. It also returns the duplicate ids.
func anchorsOf(page string) (anchors map[string]bool, twice []string) {
	anchors = map[string]bool{}
	for _, m := range anchorTag.FindAllStringSubmatch(page, -1) {
		if anchors[m[1]] {
			twice = append(twice, m[1])
		}
		anchors[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		slug := strings.ToLower(anchorTag.ReplaceAllString(m[1], ""))
		slug = notInSlug.ReplaceAllString(strings.ReplaceAll(slug, "`", ""), "")
		anchors[strings.ReplaceAll(strings.TrimSpace(slug), " ", "-")] = true
	}
	return anchors, twice
}

// danglingReferences returns the references in a text whose page or anchor does not exist.
func danglingReferences(text string, pages map[string]string) (found []string) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		page, ok := pages["docs/"+m[1]+".md"]
		if !ok {
			found = append(found, m[0]+": the page does not exist")
			continue
		}
		if anchors, _ := anchorsOf(page); m[2] != "" && !anchors[m[2]] {
			found = append(found, m[0]+": the anchor does not exist")
		}
	}
	return found
}

// numberReferences returns the references by number in a text, also those that continue on the
// next line of a comment.
func numberReferences(text string) (found []string) {
	for _, m := range numbered.FindAllString(wrapped.ReplaceAllString(text, " "), -1) {
		if !strings.HasPrefix(m, "RFC ") {
			found = append(found, m)
		}
	}
	return found
}

// brokenLinks returns the links of a page to files or anchors that do not exist.
func brokenLinks(name, text string, pages map[string]string, exists func(string) bool) (found []string) {
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, ":") {
			continue // an absolute URL
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		if !exists(file) {
			found = append(found, fmt.Sprintf("%s: %s does not exist", m[1], file))
			continue
		}
		if anchor == "" || path.Ext(file) != ".md" {
			continue
		}
		if anchors, _ := anchorsOf(pages[file]); !anchors[anchor] {
			found = append(found, fmt.Sprintf("%s: %s does not have the anchor", m[1], file))
		}
	}
	return found
}

// TestReferences checks that every reference to the documentation resolves, and that no
// reference is only a number.
func TestReferences(t *testing.T) {
	t.Parallel()
	pages := tracked(t, ".md")
	resolved := 0
	for name, text := range tracked(t, referringExtensions...) {
		if strings.HasSuffix(name, ".min.js") || strings.Contains(name, "/vendor/") {
			continue // of other projects
		}
		if !slices.ContainsFunc(inventedPages, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			resolved += len(reference.FindAllString(text, -1))
			for _, problem := range danglingReferences(text, pages) {
				t.Errorf("%s refers to %s", name, problem)
			}
		}
		if name == "docs/adr/template.md" || strings.HasPrefix(path.Base(name), "zz_generated") {
			continue
		}
		for _, old := range numberReferences(text) {
			t.Errorf("%s refers to %q; write the page and anchor, such as docs/spec/messages.md#m3", name, old)
		}
	}
	if resolved == 0 {
		t.Error("found no reference in any file, want some; check the pattern")
	}
}

// TestCommentsContainNoDecisionNumber checks that comments refer to a decision by page and anchor,
// not by its number.
func TestCommentsContainNoDecisionNumber(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range handWritten(t) {
		for _, s := range sources(t, p, true) {
			name, err := filepath.Rel(root, s.path)
			if err != nil {
				t.Fatal(err)
			}
			if bareNumberAllowed[filepath.ToSlash(name)] != "" {
				continue
			}
			for _, group := range s.file.Comments {
				if number := bareNumber.FindString(group.Text()); number != "" {
					t.Errorf("%s: comment refers to %s; write the page and anchor, such as docs/spec/messages.md#m3",
						s.fset.Position(group.Pos()), number)
				}
			}
		}
	}
}

// TestLinks checks that the links of pages resolve, and that no page has an anchor twice.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := tracked(t, ".md")
	exists := func(file string) bool {
		_, err := fs.Stat(os.DirFS("../.."), file)
		return err == nil
	}
	for name, text := range pages {
		for _, problem := range brokenLinks(name, text, pages, exists) {
			t.Errorf("%s has a broken link: %s", name, problem)
		}
		if _, twice := anchorsOf(text); len(twice) > 0 {
			t.Errorf("%s has these anchors more than once: %s", name, strings.Join(twice, ", "))
		}
	}
}

// TestReferencesCanFail calls dangling, numberReferences and brokenLinks with texts that they must
// report and texts that they must accept.
func TestReferencesCanFail(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"docs/spec/messages.md": "# Title here\n\n<a id=\"m3\"></a>\n**M3.** Text.\n"}
	exists := func(file string) bool { return file == "docs/spec/messages.md" }
	for name, c := range map[string]struct {
		found []string
		want  int
	}{
		"an anchor":                 {danglingReferences("see docs/spec/messages.md#"+"m3.", pages), 0},
		"a page":                    {danglingReferences("see docs/spec/messages.md.", pages), 0},
		"a heading":                 {danglingReferences("see docs/spec/messages.md#"+"title-here", pages), 0},
		"no such anchor":            {danglingReferences("see docs/spec/messages.md#"+"m4", pages), 1},
		"no such page":              {danglingReferences("see docs/spec/"+"letters.md", pages), 1},
		"a decision":                {numberReferences("answers (decision " + "M3)"), 1},
		"a decision without letter": {numberReferences("by decision " + "3"), 1},
		"a decision in parentheses": {numberReferences("wins (R" + "11)."), 1},
		"two of them":               {numberReferences("wins (R" + "11, R2)."), 1},
		"a section":                 {numberReferences("the contract's section " + "3.4"), 1},
		"a specification":           {numberReferences("the rules of spec " + "2"), 1},
		"a specification's":         {numberReferences("is spec " + "3's"), 1},
		"one on two lines":          {numberReferences("// the rules of spec" + "\n\t// 2 and"), 1},
		"a document":                {numberReferences("Document " + "2 covers"), 1},
		"a section of an RFC":       {numberReferences("RFC 6749 section " + "2.3.1"), 0},
		"no number":                 {numberReferences("a decision, in a section of the spec"), 0},
		"a link": {brokenLinks("docs/a.md",
			"[x](spec/messages.md#"+"m3) [y](https://example.org/z)", pages, exists), 0},
		"a link in an example": {brokenLinks("docs/a.md", "```\n[x](nowhere.md)\n```\n", pages, exists), 0},
		"a link to no file":    {brokenLinks("docs/a.md", "[x](spec/letters.md)", pages, exists), 1},
		"a link to no anchor":  {brokenLinks("docs/a.md", "[x](spec/messages.md#"+"m9)", pages, exists), 1},
		"a link to no anchor nearby": {
			brokenLinks("docs/spec/messages.md", "[x](#"+"m9) [y](#"+"m3)", pages, exists),
			1,
		},
	} {
		if len(c.found) != c.want {
			t.Errorf("%s: got %q, want %d findings", name, c.found, c.want)
		}
	}
}
