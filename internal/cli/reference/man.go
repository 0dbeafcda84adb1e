package reference

import (
	"fmt"
	"strings"
)

// Man returns one man page per command, by file name.
func Man(tree []Command, version string) map[string]string {
	pages := map[string]string{}
	root := tree[0]
	for _, c := range tree {
		var b strings.Builder
		name := fileName(c.Path)
		fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"Freshet\"\n", quoted(strings.ToUpper(name)), quoted("freshet "+version))
		fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.Use))
		b.WriteString(".SH DESCRIPTION\n")
		if c.Long != "" {
			b.WriteString(block(c.Long))
		} else {
			b.WriteString(roff(c.Short) + ".\n")
		}
		if len(c.Flags) > 0 {
			b.WriteString(".SH OPTIONS\n" + options(c.Flags))
		}
		if c.Connects && c.Path != root.Path && len(c.Commands) == 0 {
			b.WriteString(".SH OPTIONS THAT CHOOSE A SERVER\n" + options(root.Flags))
		}
		if c.Examples != "" {
			b.WriteString(".SH EXAMPLES\n" + preformatted(c.Examples))
		}
		var also []string
		for _, path := range c.Commands {
			also = append(also, roff(fileName(path))+"(1)")
		}
		if i := strings.LastIndex(c.Path, " "); i > 0 {
			also = append(also, roff(fileName(c.Path[:i]))+"(1)")
		}
		if len(also) > 0 {
			b.WriteString(".SH SEE ALSO\n" + strings.Join(also, ",\n") + "\n")
		}
		pages[name+".1"] = b.String()
	}
	return pages
}

func options(flags []Flag) string {
	var b strings.Builder
	for _, f := range flags {
		term := "--" + f.Name
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		if f.Value != "" {
			term += " " + f.Value
		}
		usage := f.Usage
		if f.Default != "" {
			usage += " (default " + f.Default + ")"
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(term), roff(usage))
	}
	return b.String()
}

// block formats paragraphs as text, and indented paragraphs as preformatted text.
func block(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, "  ") {
			b.WriteString(preformatted(paragraph))
		} else {
			b.WriteString(roff(paragraph) + "\n")
		}
	}
	return b.String()
}

func preformatted(text string) string {
	return ".nf\n" + roff(strings.TrimRight(text, "\n")) + "\n.fi\n"
}

// roff escapes backslashes, hyphens and control lines.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
