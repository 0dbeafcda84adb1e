package docsite

import (
	"net/http"
	"strings"
	"sync"

	"freshet"
	"freshet/internal/base/web"
)

// Root is the path of the documentation.
const Root = "/docs"

// policy is the Content Security Policy: the pages load only files of their own site, and scripts
// cannot turn strings into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Embedded returns the site of the embedded pages.
var Embedded = sync.OnceValues(func() (*Site, error) { return New(freshet.Pages) })

// embeddedFiles returns the files of the embedded site by location. Each is rendered when it is first opened.
var embeddedFiles = sync.OnceValues(func() (map[string]openFile, error) {
	site, err := Embedded()
	if err != nil {
		return nil, err
	}
	files := make(map[string]openFile, len(site.files))
	for location, load := range site.files {
		files[location] = sync.OnceValues(func() (*web.File, error) {
			content, err := load()
			if err != nil {
				return nil, err
			}
			return web.NewFile(location, content), nil
		})
	}
	return files, nil
})

type openFile = func() (*web.File, error)

// Handler returns a handler that serves the site of the embedded pages below Root.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.SetPageHeaders(w.Header(), policy)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "The documentation supports only GET and HEAD.", http.StatusMethodNotAllowed)
			return
		}
		files, err := embeddedFiles()
		if err != nil {
			refuse(w, http.StatusInternalServerError, "The documentation cannot be read: "+err.Error())
			return
		}
		serve(w, r, files)
	})
}

func serve(w http.ResponseWriter, r *http.Request, files map[string]openFile) {
	location, below := strings.CutPrefix(r.URL.Path, Root+"/")
	if !below {
		redirect(w, Root+"/")
		return
	}
	if location == "" || strings.HasSuffix(location, "/") {
		location += "index.html"
	}
	open, ok := files[location]
	if !ok {
		// A path without an extension means the page, or the folder.
		for _, to := range []string{location + ".html", location + "/index.html"} {
			if _, ok := files[to]; ok {
				redirect(w, Root+"/"+shorten(to))
				return
			}
		}
		refuse(w, http.StatusNotFound, "The documentation has no such page. "+Root+"/ lists all pages.")
		return
	}
	file, err := open()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "The page cannot be rendered: "+err.Error())
		return
	}
	w.Header().Set("Cache-Control", "no-cache") // the ETag saves the transfer
	file.ServeHTTP(w, r)
}

// redirect redirects to a path of this server, which is the path of a file and not the client's.
func redirect(w http.ResponseWriter, path string) {
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusPermanentRedirect)
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}
