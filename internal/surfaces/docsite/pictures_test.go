package docsite

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"freshet"
)

// pictureBudget limits the size of all pictures together: the binary contains them.
const pictureBudget = 512 << 10

// foreign matches what a picture must not contain: scripts, and references outside of the file.
var foreign = regexp.MustCompile(`(?i)<script|<foreignObject|\son\w+=|href=|@import|url\((?:[^#]|$)`)

// TestPictures checks the pictures of the pages: their types and sizes, that SVG files need nothing else, and
// that they follow the colours of dark pages.
func TestPictures(t *testing.T) {
	t.Parallel()
	types := map[string]string{".svg": "image/svg+xml", ".png": "image/png"}
	total, count := 0, 0
	err := fs.WalkDir(freshet.Pages, "docs/images", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(freshet.Pages, name)
		if err != nil {
			return err
		}
		total, count = total+len(content), count+1
		want := types[path.Ext(name)]
		res := get(t, http.MethodGet, Root+"/"+strings.TrimPrefix(name, docsFolder))
		if got := res.Header.Get("Content-Type"); want == "" || res.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: got %d with type %q, want 200 with %q", name, res.StatusCode, got, want)
		}
		if path.Ext(name) != ".svg" {
			return nil
		}
		if found := foreign.FindString(string(content)); found != "" {
			t.Errorf("%s contains %q", name, found)
		}
		if !bytes.Contains(content, []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has no colours for dark pages", name)
		}
		for decoder := xml.NewDecoder(bytes.NewReader(content)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d pictures have %d bytes", count, total); total > pictureBudget || count == 0 {
		t.Errorf("%d pictures have %d bytes, want at least one and at most %d bytes", count, total, pictureBudget)
	}
}

// TestPicturesHaveTexts checks that every picture of a page has a text for people who do not see it, and that
// every file is on a page.
func TestPicturesHaveTexts(t *testing.T) {
	t.Parallel()
	_, contents := rendered(t)
	shown := map[string]bool{}
	picture := regexp.MustCompile(`<img src="([^"]+)" alt="([^"]*)"`)
	for location, content := range contents {
		_, article, _ := strings.Cut(string(content), "<article>")
		for _, m := range picture.FindAllStringSubmatch(article, -1) {
			to, _, _ := resolve(t, location, m[1])
			shown[docsFolder+to] = true
			if len(m[2]) < 20 {
				t.Errorf("%s: picture %s has the text %q, want what it shows", location, m[1], m[2])
			}
		}
	}
	files, err := fs.Glob(freshet.Pages, "docs/images/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !shown[name] {
			t.Errorf("%s is on no page", name)
		}
	}
}
