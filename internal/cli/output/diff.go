package output

import (
	"fmt"
	"io"
	"strings"
)

// diffContext is the number of unchanged lines around a change.
const diffContext = 3

// Diff prints the difference of two texts in the unified format.
func Diff(w io.Writer, style Style, fromName, toName, from, to string) error {
	edits := lineEdits(lines(from), lines(to))
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", style.Bold("--- "+fromName), style.Bold("+++ "+toName))
	for start := 0; start < len(edits); {
		first, end := hunk(edits, start)
		if first < 0 {
			break
		}
		fromLine, toLine, fromCount, toCount := 1, 1, 0, 0
		for _, e := range edits[:first] {
			fromLine, toLine = fromLine+e.inFrom(), toLine+e.inTo()
		}
		for _, e := range edits[first:end] {
			fromCount, toCount = fromCount+e.inFrom(), toCount+e.inTo()
		}
		b.WriteString(style.Faint(fmt.Sprintf("@@ -%d,%d +%d,%d @@", fromLine, fromCount, toLine, toCount)) + "\n")
		for _, e := range edits[first:end] {
			text := string(e.op) + clean(e.line, "\t")
			switch e.op {
			case '-':
				text = style.Bad(text)
			case '+':
				text = style.Good(text)
			}
			b.WriteString(text + "\n")
		}
		start = end
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// edit is a line that is unchanged (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

func (e edit) inFrom() int {
	if e.op == '+' {
		return 0
	}
	return 1
}

func (e edit) inTo() int {
	if e.op == '-' {
		return 0
	}
	return 1
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunk returns the range of the next changes with their context. first is -1 if no change
// follows.
func hunk(edits []edit, start int) (first, end int) {
	first = -1
	equal := 0
	for i := start; i < len(edits); i++ {
		if edits[i].op == ' ' {
			equal++
			if first >= 0 && equal > 2*diffContext {
				return first, i - diffContext
			}
			continue
		}
		if first < 0 {
			first = max(start, i-diffContext)
		}
		equal = 0
		end = i + 1
	}
	return first, min(len(edits), end+diffContext)
}

// maxDiff limits the number of table cells of the comparison. Larger texts are shown as
// completely replaced.
const maxDiff = 16 << 20

// lineEdits compares two texts by their longest common subsequence.
func lineEdits(from, to []string) []edit {
	var head, tail []edit
	for len(from) > 0 && len(to) > 0 && from[0] == to[0] {
		head = append(head, edit{' ', from[0]})
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && from[len(from)-1] == to[len(to)-1] {
		tail = append(tail, edit{' ', from[len(from)-1]})
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	edits := append(head, middleEdits(from, to)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

func middleEdits(from, to []string) []edit {
	var edits []edit
	i, j := 0, 0
	if len(from)*len(to) <= maxDiff {
		// length[i][j] is the length of the longest common subsequence of from[i:] and to[j:].
		length := make([][]int32, len(from)+1)
		for i := range length {
			length[i] = make([]int32, len(to)+1)
		}
		for i := len(from) - 1; i >= 0; i-- {
			for j := len(to) - 1; j >= 0; j-- {
				if from[i] == to[j] {
					length[i][j] = length[i+1][j+1] + 1
				} else {
					length[i][j] = max(length[i+1][j], length[i][j+1])
				}
			}
		}
		for i < len(from) && j < len(to) {
			switch {
			case from[i] == to[j]:
				edits = append(edits, edit{' ', from[i]})
				i, j = i+1, j+1
			case length[i+1][j] >= length[i][j+1]:
				edits = append(edits, edit{'-', from[i]})
				i++
			default:
				edits = append(edits, edit{'+', to[j]})
				j++
			}
		}
	}
	for ; i < len(from); i++ {
		edits = append(edits, edit{'-', from[i]})
	}
	for ; j < len(to); j++ {
		edits = append(edits, edit{'+', to[j]})
	}
	return edits
}
