package docsite

import (
	"bytes"
	"fmt"
)

// listForModels returns llms.txt: a list of all pages in Markdown, with links to their Markdown, for programs that
// read documentation.
func (s *Site) listForModels() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Freshet\n\n> A self-hosted streaming cloud in one binary: an HTTP message API, the Kafka " +
		"protocol, a schema registry, a Kubernetes-style resource API and a web console.\n")
	for _, sec := range s.sections {
		fmt.Fprintf(&b, "\n## %s\n\n", sec.title)
		for _, p := range sec.pages {
			doc, err := s.parse(p)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "- [%s](%s)", p.title, p.markdown)
			if summary := doc.summary(); summary != "" {
				fmt.Fprintf(&b, ": %s", summary)
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}
