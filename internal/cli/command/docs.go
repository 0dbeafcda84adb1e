package command

import (
	"regexp"
	"strings"

	"freshet/internal/cli/contexts"
)

// Texts in the code name a page of the documentation by its path in the repository, such as
// docs/howto/operate.md. A user who has only the binary reads it on the server, so the commands print
// its URL there.

// page matches the path of a page, with or without an anchor.
var page = regexp.MustCompile(`\bdocs/([a-z0-9/_-]+)\.md(#[A-Za-z0-9_-]+)?`)

// WithLinks replaces the paths of pages in a text by their URLs on the server in use. Without a server,
// the text stays as it is.
func (e *Env) WithLinks(text string) string {
	if !page.MatchString(text) {
		return text
	}
	server := e.Selection().Server
	if server == "" {
		at, err := e.Context()
		if err != nil {
			return text
		}
		server = at.Server
	}
	if contexts.CheckServer(server) != nil {
		return text
	}
	server = strings.ReplaceAll(strings.TrimRight(server, "/"), "$", "$$")
	return page.ReplaceAllString(text, server+"/docs/$1.html$2")
}
