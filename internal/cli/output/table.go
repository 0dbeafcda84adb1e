package output

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Column is one of a table.
type Column struct {
	Name string
	// Wide is for a column that only -o wide shows.
	Wide bool
}

// Columns makes columns that are always shown.
func Columns(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i].Name = name
	}
	return columns
}

// Table is rows under headings, as kubectl prints them.
type Table struct {
	Columns []Column
	Rows    [][]string
	// Wide shows all columns, NoHeaders leaves out the headings.
	Wide, NoHeaders bool
	// Paint colours a cell; it must not change its width.
	Paint func(column int, cell string) string

	widths []int // of the columns, kept from one Write to the next
}

// gap is between columns, as in kubectl.
const gap = 3

// Write prints the rows, and the headings the first time. Text from a server
// cannot steer the terminal.
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
		if cells[i] == "" { // nothing follows the last cell of a line
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
