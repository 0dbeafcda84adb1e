package protobuf

import (
	"strconv"
	"strings"
)

// printFile prints a model in the layout of Confluent Schema Registry: syntax and package,
// imports, options, messages, enums, extends, services. Sections are separated by an empty
// line, declarations of one section are not. Empty lines inside a block have the block's
// indentation.
func printFile(f *file) string {
	p := &printer{}
	p.file(f)
	return p.b.String()
}

// printLines is printFile without very long lines, which are expensive for the linker.
func printLines(f *file) string {
	p := &printer{split: true}
	p.file(f)
	return p.b.String()
}

func (p *printer) file(f *file) {
	switch {
	case f.edition != "":
		p.line("edition = " + quote(f.edition) + ";")
	case f.syntax != "":
		p.line("syntax = " + quote(f.syntax) + ";")
	}
	if f.pkg != "" {
		p.line("package " + f.pkg + ";")
	}
	p.imports(f.imports)
	p.optionStatements(f.options)
	if extends, rest, ok := f.shuffled(); ok {
		p.gap()
		p.inOrder(extends, nil, nil, f.messages)
		p.types(nil, f.enums)
		p.extends(rest)
	} else {
		if len(f.messages)+len(f.enums) > 0 {
			p.gap()
		}
		p.types(f.messages, f.enums)
		p.extends(f.extends)
	}
	if len(f.services) > 0 {
		p.gap()
	}
	for _, s := range f.services {
		p.service(s)
	}
}

type printer struct {
	b     strings.Builder
	depth int
	split bool // print one statement for each reserved name
}

const indents = "                                                                "

func (p *printer) indent() {
	for n := 2 * p.depth; n > 0; n -= len(indents) {
		p.b.WriteString(indents[:min(n, len(indents))])
	}
}

func (p *printer) line(text string) {
	p.indent()
	p.b.WriteString(text)
	p.b.WriteByte('\n')
}

// gap prints the empty line before a section.
func (p *printer) gap() {
	p.indent()
	p.b.WriteByte('\n')
}

func (p *printer) imports(imports []importDecl) {
	if len(imports) > 0 {
		p.gap()
	}
	for kind, word := range [...]string{importPlain: "", importPublic: "public ", importWeak: "weak "} {
		for _, imp := range imports {
			if imp.kind == importKind(kind) {
				p.line("import " + word + quote(imp.path) + ";")
			}
		}
	}
}

func (p *printer) optionStatements(options []option) {
	if len(options) > 0 {
		p.gap()
	}
	p.optionLines(options)
}

func (p *printer) optionLines(options []option) {
	for _, o := range options {
		p.indent()
		p.b.WriteString("option ")
		p.option(o)
		p.b.WriteString(";\n")
	}
}

func (p *printer) types(messages []*message, enums []*enum) {
	for _, m := range messages {
		p.indent()
		p.b.WriteString("message " + m.name + " ")
		p.body(m)
	}
	for _, e := range enums {
		p.enum(e)
	}
}

// body prints the body of a message or group with its braces. An empty line separates the
// sections.
func (p *printer) body(m *message) {
	p.b.WriteByte('{')
	first := true
	section := func(n int, print func()) {
		if n == 0 {
			return
		}
		if first {
			p.b.WriteByte('\n')
		} else {
			p.gap()
		}
		first = false
		p.depth++
		print()
		p.depth--
	}
	section(len(m.reserved), func() { p.reserved(m.reserved, maxFieldTag) })
	section(len(m.options), func() { p.optionLines(m.options) })
	section(len(m.fields), func() { p.fields(m.fields) })
	if t, ok := m.shuffled(); ok {
		section(len(t.plainOneofs), func() { p.oneofs(t.plainOneofs) })
		section(len(m.extensions), func() { p.extensions(m.extensions) })
		section(len(t.plainExtends), func() { p.extendBlocks(t.plainExtends) })
		section(1, func() {
			p.inOrder(t.extends, t.oneofs, m.groups, m.messages)
			p.types(nil, m.enums)
		})
	} else {
		section(len(m.oneofs), func() { p.oneofs(m.oneofs) })
		section(len(m.groups), func() { p.groups(m.groups) })
		section(len(m.extensions), func() { p.extensions(m.extensions) })
		section(len(m.extends), func() { p.extendBlocks(m.extends) })
		section(len(m.messages)+len(m.enums), func() { p.types(m.messages, m.enums) })
	}
	p.closeBrace(first)
}

func (p *printer) closeBrace(empty bool) {
	if !empty {
		p.indent()
	}
	p.b.WriteString("}\n")
}

func (p *printer) reserved(statements []reserved, limit int64) {
	for _, r := range statements {
		words := rangeWords(r.ranges, limit)
		for _, name := range r.names {
			if !r.idents {
				name = quote(name)
			}
			words = append(words, name)
		}
		if !p.split {
			words = []string{strings.Join(words, ", ")}
		}
		for _, word := range words {
			p.line("reserved " + word + ";")
		}
	}
}

func rangeWords(ranges []tagRange, limit int64) []string {
	words := make([]string, 0, len(ranges))
	for _, r := range ranges {
		word := strconv.FormatInt(r.start, 10)
		if !r.single {
			end := "max"
			if r.end != limit {
				end = strconv.FormatInt(r.end, 10)
			}
			word += " to " + end
		}
		words = append(words, word)
	}
	return words
}

func (p *printer) fields(fields []*field) {
	for _, f := range fields {
		p.indent()
		p.b.WriteString(labelWords[f.label])
		if f.isMap() {
			p.b.WriteString("map<" + f.key + ", " + f.typ + ">")
		} else {
			p.b.WriteString(f.typ)
		}
		p.b.WriteString(" " + f.name + " = " + strconv.FormatInt(f.tag, 10))
		p.bracketed(f.options)
		p.b.WriteString(";\n")
	}
}

func (p *printer) groups(groups []*group) {
	for _, g := range groups {
		p.indent()
		p.b.WriteString(labelWords[g.label] + "group " + g.body.name + " = " + strconv.FormatInt(g.tag, 10))
		p.bracketed(g.options)
		p.b.WriteByte(' ')
		p.body(g.body)
	}
}

func (p *printer) oneofs(oneofs []*oneof) {
	for _, o := range oneofs {
		p.line("oneof " + o.name + " {")
		p.depth++
		p.optionLines(o.options)
		p.depth--
		if len(o.options) > 0 && len(o.fields) > 0 {
			p.gap()
		}
		p.depth++
		p.fields(o.fields)
		p.depth--
		if len(o.groups) > 0 && len(o.options)+len(o.fields) > 0 {
			p.gap()
		}
		p.depth++
		p.groups(o.groups)
		p.depth--
		p.line("}")
	}
}

func (p *printer) extensions(statements []extensionRange) {
	for _, e := range statements {
		p.indent()
		p.b.WriteString("extensions " + strings.Join(rangeWords(e.ranges, maxFieldTag), ", "))
		p.bracketed(e.options)
		p.b.WriteString(";\n")
	}
}

func (p *printer) enum(e *enum) {
	p.indent()
	p.b.WriteString("enum " + e.name + " {")
	empty := len(e.reserved)+len(e.options)+len(e.values) == 0
	if !empty {
		p.b.WriteByte('\n')
	}
	p.depth++
	p.reserved(e.reserved, maxEnumNumber)
	p.optionLines(e.options)
	for _, v := range e.values {
		p.indent()
		p.b.WriteString(v.name + " = " + strconv.FormatInt(v.number, 10))
		p.bracketed(v.options)
		p.b.WriteString(";\n")
	}
	p.depth--
	p.closeBrace(empty)
}

func (p *printer) extends(extends []*extend) {
	if len(extends) > 0 {
		p.gap()
	}
	p.extendBlocks(extends)
}

func (p *printer) extendBlocks(extends []*extend) {
	for _, e := range extends {
		p.indent()
		p.b.WriteString("extend " + e.extendee + " {")
		empty := len(e.fields)+len(e.groups) == 0
		if !empty {
			p.b.WriteByte('\n')
		}
		p.depth++
		p.fields(e.fields)
		p.groups(e.groups)
		p.depth--
		p.closeBrace(empty)
	}
}

func (p *printer) service(s *service) {
	p.indent()
	p.b.WriteString("service " + s.name + " {")
	if len(s.options) > 0 {
		p.b.WriteByte('\n')
		p.depth++
		p.optionLines(s.options)
		p.depth--
	}
	if len(s.methods) > 0 {
		p.gap()
		p.depth++
		for _, m := range s.methods {
			p.method(m)
		}
		p.depth--
	}
	p.closeBrace(len(s.options)+len(s.methods) == 0)
}

func (p *printer) method(m *method) {
	stream := func(on bool, typ string) string {
		if on {
			return "(stream " + typ + ")"
		}
		return "(" + typ + ")"
	}
	p.indent()
	p.b.WriteString("rpc " + m.name + " " + stream(m.clientStreams, m.input) + " returns " +
		stream(m.serverStreams, m.output))
	if len(m.options) > 0 {
		p.b.WriteString(" {\n")
		p.depth++
		p.optionLines(m.options)
		p.depth--
		p.indent()
		p.b.WriteByte('}')
	}
	p.b.WriteString(";\n")
}
