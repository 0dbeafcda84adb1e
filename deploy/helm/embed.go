// Package helm embeds the Helm chart as it is in the repository. go:embed reaches only files
// below its package, so this package is beside the chart. It has no code;
// internal/cli/generatecmd/chart renders the chart without the Helm library.
package helm

import "embed"

// Files contains the chart in the folder freshet. The prefix all includes _helpers.tpl.
//
//go:embed all:freshet
var Files embed.FS
