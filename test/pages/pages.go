// Package pages takes the commands out of pages of the documentation, so that
// tests can run what readers are told to type. The tests that do are in e2e.
package pages

import "strings"

// Commands returns the shell blocks of a page, one after the other.
func Commands(page string) string { return strings.Join(Blocks(page, "sh"), "") }

// Blocks returns the blocks of a page in a language; "" are those without one.
func Blocks(page, language string) []string {
	var blocks []string
	inside, wanted := false, false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
			if wanted = inside && strings.TrimSpace(line) == "```"+language; wanted {
				blocks = append(blocks, "")
			}
		case wanted:
			blocks[len(blocks)-1] += line
		}
	}
	return blocks
}
