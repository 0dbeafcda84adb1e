// Package openapi embeds the OpenAPI documents of the HTTP surfaces, so that each surface can serve
// its own. The documents are the reference: the tests of the surfaces check every response against
// them. The resource API is not here, because it generates its documents from the types in
// freshet/api.
package openapi

import (
	"embed"
	"strings"
)

//go:embed *.yaml
var documents embed.FS

// Document returns the document of a surface, for example messages; nil if the surface has none.
func Document(surface string) []byte {
	b, err := documents.ReadFile(surface + ".yaml")
	if err != nil {
		return nil
	}
	return b
}

// Surfaces returns the names of the surfaces that have a document.
func Surfaces() []string {
	entries, err := documents.ReadDir(".")
	if err != nil {
		return nil // cannot happen: the folder is embedded
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}
