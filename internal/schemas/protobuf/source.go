package protobuf

import (
	"slices"
	"sync"

	"github.com/bufbuild/protocompile/linker"
)

// source is one file in the closure of a schema: the schema itself, a file it
// reaches through references, or a built-in one. The same model appears as
// different sources in different closures, because an import path means what
// the schema at the root says it means.
type source struct {
	path    string
	model   *file
	text    string // what the author wrote, "" when only the model will do
	subject string
	version int
	builtin linker.File // set for built-in files only

	imports []*source // in the order of model.imports; nil where not found
	visible []*source // itself, its imports, and what those import publicly

	once  sync.Once
	table *symbolTable
}

func (src *source) symbols() *symbolTable {
	src.once.Do(func() { src.table = newSymbolTable(src) })
	return src.table
}

// same reports whether two sources are known to be one text, so that nothing
// between them needs comparing.
func (src *source) same(other *source) bool {
	if src.model == other.model {
		return true
	}
	return src.subject != "" && src.subject == other.subject && src.version == other.version
}

// closure gathers every file that the root reaches, by import path. A path
// means one file per closure: the root's own references win, then those of its
// references in order. So two references that lean on different versions of a
// third still link, as they do in other registries.
func closure(root *source, refs []Reference) ([]*source, error) {
	byPath := map[string]*source{}
	var files []*source
	size := len(root.text)
	queue := slices.Clone(refs)
	for len(queue) > 0 {
		ref := queue[0]
		queue = queue[1:]
		if _, known := byPath[ref.Name]; known || shadowed(ref.Name) {
			continue
		}
		if ref.Schema == nil {
			return nil, invalidf("reference %q (subject %q, version %d) is not resolved", ref.Name, ref.Subject, ref.Version)
		}
		src := &source{
			path: ref.Name, model: ref.Schema.root.model, text: ref.Schema.root.text,
			subject: ref.Subject, version: ref.Version,
		}
		byPath[ref.Name] = src
		files = append(files, src)
		size += len(src.text)
		if len(files) > maxFiles || size > maxClosure {
			return nil, invalidf("schema reaches too many files through its references")
		}
		queue = append(queue, ref.Schema.refs...)
	}
	files = append(files, root)
	for _, src := range files {
		src.imports = make([]*source, len(src.model.imports))
		for i, imp := range src.model.imports {
			if src.imports[i] = byPath[imp.path]; src.imports[i] == nil {
				src.imports[i] = builtinFile(imp.path)
			}
		}
	}
	for _, src := range files {
		src.visible = visibleFrom(src)
	}
	return files, nil
}

// visibleFrom lists the files whose names src may use.
func visibleFrom(src *source) []*source {
	visible := []*source{src}
	seen := map[*source]bool{src: true}
	var add func(s *source)
	add = func(s *source) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		visible = append(visible, s)
		for i, imp := range s.model.imports {
			if imp.kind == importPublic {
				add(s.imports[i])
			}
		}
	}
	for _, s := range src.imports {
		add(s)
	}
	return visible
}

// checkClosure reports the first import that leads nowhere, or round in a
// circle, and closures that would take the linker for ever.
func checkClosure(root *source) error {
	c := closureCheck{root: root, paths: map[*source]int{}}
	return c.visit(root)
}

type closureCheck struct {
	root    *source
	paths   map[*source]int // public paths below a file; -1 while under way
	lookups int
}

func (c *closureCheck) visit(src *source) error {
	c.paths[src] = -1
	if src.builtin == nil {
		c.lookups += countLookups(src.model) * len(src.visible)
	}
	if c.lookups > maxLookups {
		return invalidf("too many references to types across too many files")
	}
	paths := 1
	for i, imp := range src.model.imports {
		next := src.imports[i]
		if next == nil {
			return missingImport(c.root, src, imp)
		}
		switch c.paths[next] {
		case -1:
			return invalidf("import cycle through %q", imp.path)
		case 0:
			if err := c.visit(next); err != nil {
				return err
			}
		}
		if src == c.root || imp.kind == importPublic {
			paths += c.paths[next]
		}
		if paths > maxPublicPaths {
			return invalidf("too many public imports lead to the same files")
		}
	}
	c.paths[src] = paths
	return nil
}

func missingImport(root, src *source, imp importDecl) error {
	if src != root {
		return invalidf("%q, which this schema references, imports %q, and no reference has that name", src.path, imp.path)
	}
	pos := imp.pos
	if root.text == "" {
		pos = position{}
	}
	return invalidAt(pos, "import \""+imp.path+"\" is not built in, and no reference has that name")
}

// countLookups counts the scopes that the linker searches for a file's names.
func countLookups(f *file) int {
	c := referenceCounter{}
	c.file(f)
	return c.cost
}

// referenceCounter adds up, over all uses of a name, the scopes to search.
type referenceCounter struct{ cost, depth int }

func (c *referenceCounter) file(f *file) {
	c.depth = 2
	for i := range len(f.pkg) {
		if f.pkg[i] == '.' {
			c.depth++
		}
	}
	c.cost += len(f.options) * c.depth
	for _, m := range f.messages {
		c.message(m)
	}
	for _, e := range f.enums {
		c.enum(e)
	}
	for _, e := range f.extends {
		c.fields(e.fields, e.groups)
	}
	for _, s := range f.services {
		for _, m := range s.methods {
			c.cost += (2 + len(m.options)) * c.depth
		}
	}
}

func (c *referenceCounter) message(m *message) {
	c.depth++
	c.cost += len(m.options) * c.depth
	c.fields(m.fields, m.groups)
	for _, o := range m.oneofs {
		c.fields(o.fields, o.groups)
	}
	for _, e := range m.extends {
		c.fields(e.fields, e.groups)
	}
	for _, e := range m.enums {
		c.enum(e)
	}
	for _, nested := range m.messages {
		c.message(nested)
	}
	c.depth--
}

func (c *referenceCounter) fields(fields []*field, groups []*group) {
	for _, f := range fields {
		c.cost += (1 + len(f.options)) * c.depth
	}
	for _, g := range groups {
		c.cost += (1 + len(g.options)) * c.depth
		c.message(g.body)
	}
}

func (c *referenceCounter) enum(e *enum) {
	for _, v := range e.values {
		c.cost += len(v.options) * c.depth
	}
}
