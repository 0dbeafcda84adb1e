// Package freshet embeds the documentation as it is in the repository: the Markdown pages and the
// files beside them. go:embed reaches only files below its package, so this package is at the
// root. It has no code; internal/surfaces/docsite renders and serves the pages.
package freshet

import "embed"

// Pages contains the pages by their path in the repository.
//
//go:embed README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md docs
var Pages embed.FS
