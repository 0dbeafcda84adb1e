package output

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table.
type Column struct {
	Name string
	// Wide is set for a column that only -o wide shows.
	Wide bool
}

// Columns returns columns that are always shown.
func Columns(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i].Name = name
	}
	return columns
}

// Table is a table in the format of kubectl.
type Table struct {
	Columns []Column
	Rows    [][]string
	// Wide shows all columns, NoHeaders omits the headings.
	Wide, NoHeaders bool
	// Paint colours a cell; it must not change its width.
	Paint func(column int, cell string) string

	widths []int // column widths, kept between calls of Write
}

// gap is the number of spaces between columns, as in kubectl.
const gap = 3

// Write prints the rows, and the headings in the first call. It escapes control characters,
// because cells contain text from servers.
func (t *Table) Write(w io.Writer) error {
	first := t.widths == nil
	if first {
		t.widths = make([]int, len(t.Columns))
	}
	for i, c := range t.Columns {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.Name))
		for _, row := range t.Rows {
			if i < len(row) {
				row[i] = clean(row[i], "")
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
			}
		}
	}
	var b strings.Builder
	if first && !t.NoHeaders {
		names := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			names[i] = strings.ToUpper(c.Name)
		}
		t.line(&b, names, nil)
	}
	for _, row := range t.Rows {
		t.line(&b, row, t.Paint)
	}
	t.Rows = nil
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) line(b *strings.Builder, cells []string, paint func(int, string) string) {
	pad := 0
	for i, c := range t.Columns {
		if c.Wide && !t.Wide || i >= len(cells) {
			continue
		}
		if cells[i] == "" { // pad only before the next non-empty cell: no trailing spaces
			pad += t.widths[i] + gap
			continue
		}
		b.WriteString(strings.Repeat(" ", pad))
		pad = t.widths[i] - utf8.RuneCountInString(cells[i]) + gap
		if paint != nil {
			b.WriteString(paint(i, cells[i]))
		} else {
			b.WriteString(cells[i])
		}
	}
	b.WriteString("\n")
}
