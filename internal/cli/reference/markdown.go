package reference

import (
	"fmt"
	"strings"
)

// notice is the first line of every generated page.
const notice = "<!-- Generated from the help texts by `make cli-reference`. Do not edit. -->\n\n"

// Markdown returns one page per command family, by file name. README.md lists all
// commands.
func Markdown(tree []Command) map[string]string {
	pages := map[string]string{}
	root := tree[0]
	var index strings.Builder
	index.WriteString(notice + "# The command line\n\n" + paragraphs(root.Long) + "\n")
	index.WriteString("| command | |\n|---|---|\n")
	page := ""
	for _, c := range tree[1:] {
		words := strings.Fields(c.Path)
		if len(words) == 2 {
			page = fileName(c.Path) + ".md"
			pages[page] = notice
			fmt.Fprintf(&index, "| [`%s`](%s) | %s |\n", c.Path, page, cell(c.Short))
		}
		pages[page] += section(c, len(words)-1)
	}
	index.WriteString("\n## Flags that choose a server\n\nEvery command that connects to a server takes them.\n\n" +
		flagTable(root.Flags))
	pages["README.md"] = index.String()
	return pages
}

func section(c Command, level int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", strings.Repeat("#", level), c.Path)
	if c.Long != "" {
		b.WriteString(paragraphs(c.Long))
	} else {
		b.WriteString(c.Short + ".\n")
	}
	fmt.Fprintf(&b, "\n```\n%s\n```\n", c.Use)
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Examples != "" {
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.TrimRight(c.Examples, "\n"))
	}
	if len(c.Flags) > 0 {
		b.WriteString("\n" + flagTable(c.Flags))
	}
	if c.Connects && len(c.Commands) == 0 {
		b.WriteString("\nAnd those that [choose a server](README.md#flags-that-choose-a-server).\n")
	}
	b.WriteString("\n")
	return b.String()
}

func flagTable(flags []Flag) string {
	var b strings.Builder
	b.WriteString("| flag | |\n|---|---|\n")
	for _, f := range flags {
		name := "`--" + f.Name
		if f.Value != "" {
			name += " " + strings.ToUpper(strings.ReplaceAll(f.Value, " ", "-"))
		}
		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		usage := f.Usage
		if f.Default != "" {
			usage += " (default `" + f.Default + "`)"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cell(name), cell(usage))
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// paragraphs puts indented lines into code blocks and keeps the rest as text.
func paragraphs(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text + "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != code && strings.TrimSpace(line) != "" {
			b.WriteString("```\n")
			code = indented
		}
		b.WriteString(line)
	}
	if code {
		b.WriteString("```\n")
	}
	return b.String()
}
