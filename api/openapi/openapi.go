// Package openapi embeds the OpenAPI documents of the HTTP surfaces, so that
// each surface can serve its own. The documents are the reference; tests of the
// surfaces hold every reply against them.
package openapi

import "embed"

//go:embed *.yaml
var documents embed.FS

// Document returns the document of a surface, for example messages; nil when
// there is none.
func Document(surface string) []byte {
	b, err := documents.ReadFile(surface + ".yaml")
	if err != nil {
		return nil
	}
	return b
}
