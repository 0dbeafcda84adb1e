// Package pages extracts the commands from pages of the documentation, so that the tests
// in test/e2e can run them.
package pages

import "strings"

// Commands returns the concatenated shell blocks of a page.
func Commands(page string) string { return strings.Join(Blocks(page, "sh"), "") }

// Blocks returns the code blocks of a page in a language; "" means blocks without one.
func Blocks(page, language string) []string {
	var blocks []string
	inBlock, matching := false, false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
			if matching = inBlock && strings.TrimSpace(line) == "```"+language; matching {
				blocks = append(blocks, "")
			}
		case matching:
			blocks[len(blocks)-1] += line
		}
	}
	return blocks
}
