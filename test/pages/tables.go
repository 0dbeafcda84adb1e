package pages

import "strings"

// Section returns the text below a heading such as "## Limits", up to the next heading of its level or above,
// and whether the page has the heading.
func Section(page, heading string) (text string, found bool) {
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	var b strings.Builder
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch hashes := len(line) - len(strings.TrimLeft(line, "#")); {
		case line == heading:
			found = true
			continue
		case found && hashes > 0 && hashes <= level:
			return b.String(), true
		}
		if found {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), found
}

// Rows returns the cells of all tables in a text, without the rows of their heads.
func Rows(text string) (rows [][]string) {
	body := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			body = false
		case strings.HasPrefix(line, "|-"):
			body = true
		case body:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}
