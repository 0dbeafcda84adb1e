// Package pages takes the commands out of pages of the documentation, so that
// tests can run what readers are told to type. The tests that do are in e2e.
package pages

import "strings"

// Commands returns the shell blocks of a page, one after the other.
func Commands(page string) string {
	var script strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside && strings.TrimSpace(line) == "```sh"
		case inside:
			script.WriteString(line)
		}
	}
	return script.String()
}
