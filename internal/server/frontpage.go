package server

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"freshet/internal/config"
	"freshet/internal/web"
)

//go:embed frontpage.html
var frontPageText string

var frontPageTemplate = template.Must(template.New("front page").Parse(frontPageText))

// frontPage is what a browser gets at the root: where things are. Everybody else
// gets what the registry answers there. It needs nothing from elsewhere and runs
// nothing, and its policy says so.
func frontPage(cfg *config.Config, next http.Handler) (http.Handler, error) {
	var page bytes.Buffer
	if err := frontPageTemplate.Execute(&page, struct{ Base, Secure, Cluster, Domain string }{
		cfg.PublicURL(), cfg.SecureURL(), cfg.DefaultCluster, cfg.Domain,
	}); err != nil {
		return nil, fmt.Errorf("making the front page: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browser := strings.Contains(r.Header.Get("Accept"), "text/html")
		if r.URL.Path != "/" || (r.Method != http.MethodGet && r.Method != http.MethodHead) || !browser {
			next.ServeHTTP(w, r)
			return
		}
		web.RecordOf(r.Context()).SetRoute("console", "/")
		h := w.Header()
		h.Add("Vary", "Accept")
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		web.WriteBody(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
	}), nil
}
