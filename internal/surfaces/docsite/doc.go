// Package docsite renders the Markdown pages of the repository as a documentation site, serves it
// at /docs/, and writes it to a directory for any other web server (docs/adr/0055-documentation-site.md).
//
// A Site has the files of the site by their path: an HTML page and the Markdown for each page,
// the style sheet and script, the search index and llms.txt. Each file is rendered when it is first
// requested. All links between files are relative, so that the site works below any path.
//
// The content is the same for every caller and has no secrets, so that the handler needs no
// authentication. The texts of the pages are not here but in docs; the package freshet embeds them.
//
// It has no locks: a Site does not change, and sync.OnceValues renders each file once.
package docsite
