// Package console serves the web console: static files that are embedded in the binary
// and run in a browser. It owns the files, their URLs, caching and the Content Security
// Policy. It has no API: the files call the public APIs with the token of the signed-in
// caller (docs/adr/0028-console-without-a-build-step.md). The handler is mounted by
// internal/server.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"freshet/internal/base/web"
)

//go:embed static
var files embed.FS

// Root is the path of the console. Files under Root/-/<hash of all files>/ never change;
// "-" is not a valid organization. Every other path is a view, and returns the page.
const Root = "/console"

// policy is the Content Security Policy. It lets the page load its own files and call its
// own server, and nothing else. Only the listed Trusted Types policies turn strings into
// markup or scripts: that of lit-html (constant templates), and those of the API reference.
//
// The hash allows the style sheet that is inlined into the page.
var policy = "default-src 'none'; script-src 'self'; style-src 'self' '" + hashOf("static/first.css") +
	"'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types lit-html console-vendor console-inert dompurify default"

// hashOf returns the hash of an embedded file in the form of a Content Security Policy.
func hashOf(name string) string {
	sum := sha256.Sum256(mustRead(name))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func mustRead(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic("reading the embedded files of the console: " + err.Error()) // cannot happen: go:embed checks them
	}
	return body
}

// pages serves the files.
type pages struct {
	assets map[string]*web.File // by path below static/
	page   *web.File
	root   string // URL path of the files, with their hash
}

// Handler returns a handler that serves the console. The first request reads the files.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { embedded().ServeHTTP(w, r) })
}

var embedded = sync.OnceValue(func() *pages {
	c := &pages{assets: make(map[string]*web.File)}
	all := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body := mustRead(name)
		all.Write(fmt.Appendf(nil, "%s %d\n", name, len(body)))
		all.Write(body)
		c.assets[strings.TrimPrefix(name, "static/")] = web.NewFile(name, body)
		return nil
	})
	if err != nil {
		panic("reading the embedded files of the console: " + err.Error()) // cannot happen: go:embed checks them
	}
	c.root = Root + "/-/" + hex.EncodeToString(all.Sum(nil))[:16] + "/"
	c.page = web.NewFile("index.html", c.fill(mustRead("static/index.html")))
	return c
})

// fill inserts the URL of the files, the inlined style sheet and the icon into the page.
// It adds preload links for all modules that the page imports, so that the browser
// requests them in parallel instead of one after the other.
func (c *pages) fill(page []byte) []byte {
	var preload strings.Builder
	for _, name := range imported("app.js") {
		fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s\">\n", c.root+name)
	}
	page = bytes.ReplaceAll(page, []byte("<!-- preload -->\n"), []byte(preload.String()))
	page = bytes.ReplaceAll(page, []byte("{{first.css}}"), mustRead("static/first.css"))
	page = bytes.ReplaceAll(page, []byte("{{icon.svg}}"), bytes.TrimSpace(mustRead("static/icon.svg")))
	return bytes.ReplaceAll(page, []byte("{{root}}"), []byte(c.root))
}

// importing matches static imports and re-exports of relative modules, on one line or
// several. Dynamic imports and other declarations contain one of the excluded characters.
var importing = regexp.MustCompile(`(?m)^(?:import|export)[^'";=(]*['"](\.[^'"]+)['"]`)

// imported returns a module and all modules that it imports statically, transitively.
func imported(name string) []string {
	list := []string{name}
	for i := 0; i < len(list); i++ {
		for _, m := range importing.FindAllSubmatch(mustRead("static/"+list[i]), -1) {
			if next := path.Join(path.Dir(list[i]), string(m[1])); !slices.Contains(list, next) {
				list = append(list, next)
			}
		}
	}
	return list
}

// ServeHTTP implements http.Handler.
func (c *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	web.SetPageHeaders(h, policy)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The console supports only GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case r.URL.Path == Root:
		h.Set("Location", Root+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
	case strings.HasPrefix(r.URL.Path, Root+"/-/"):
		c.serveFile(w, r)
	default:
		h.Set("Cache-Control", "no-cache")
		c.page.ServeHTTP(w, r)
	}
}

func (c *pages) serveFile(w http.ResponseWriter, r *http.Request) {
	name, ours := strings.CutPrefix(r.URL.Path, c.root)
	a, ok := c.assets[name]
	if !ours || !ok || name == "index.html" {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "The file does not exist in this version of the console. Reload the page.", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.ServeHTTP(w, r)
}
