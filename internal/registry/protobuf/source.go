package protobuf

import (
	"fmt"
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
	size    int    // of what the author wrote
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
// third still link, as they do in other registries. Without check, references
// that are not resolved are left out.
func closure(root *source, refs []Reference, check bool) error {
	byPath := map[string]*source{}
	var files []*source
	size := root.size
	queue := slices.Clone(refs)
	for len(queue) > 0 {
		ref := queue[0]
		queue = queue[1:]
		if _, known := byPath[ref.Name]; known || shadowed(ref.Name) {
			continue
		}
		if ref.Schema == nil && !check {
			continue
		}
		if ref.Schema == nil {
			return invalidf("reference %q (subject %q, version %d) is not resolved", ref.Name, ref.Subject, ref.Version)
		}
		src := &source{
			path: ref.Name, model: ref.Schema.root.model, text: ref.Schema.root.text, size: ref.Schema.root.size,
			subject: ref.Subject, version: ref.Version,
		}
		byPath[ref.Name] = src
		files = append(files, src)
		size += src.size
		if len(files) > maxFiles || size > maxClosure {
			return invalidf("schema reaches too many files through its references")
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
	return nil
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
// circle, and closures that would take the linker forever.
func checkClosure(root *source) error {
	c := closureCheck{paths: map[*source]int{}}
	return c.visit(root)
}

type closureCheck struct {
	paths   map[*source]int // public paths below a file; -1 while under way
	lookups int
}

func (c *closureCheck) visit(src *source) error {
	c.paths[src] = -1
	if src.builtin == nil {
		if err := c.count(src); err != nil {
			return err
		}
	}
	paths := 1
	for i, imp := range src.model.imports {
		next := src.imports[i]
		if next == nil {
			return &missingImport{from: src.path, path: imp.path}
		}
		switch c.paths[next] {
		case -1:
			return invalidf("import cycle through %q", imp.path)
		case 0:
			if err := c.visit(next); err != nil {
				return err
			}
		}
		if src.path == rootPath || imp.kind == importPublic {
			paths += c.paths[next]
		}
		if paths > maxPublicPaths {
			return invalidf("too many public imports lead to the same files")
		}
	}
	c.paths[src] = paths
	return nil
}

// missingImport is an import that no reference and no built-in file answers.
type missingImport struct{ from, path string }

func (e *missingImport) Error() string {
	if e.from == rootPath {
		return fmt.Sprintf("import %q is not built in, and no reference has that name", e.path)
	}
	return fmt.Sprintf("%q, which this schema references, imports %q, and no reference has that name", e.from, e.path)
}

func (e *missingImport) Unwrap() error { return ErrInvalid }

// count bounds the work in one file that grows faster than the file: resolving
// names, and finding the members of oneofs.
func (c *closureCheck) count(src *source) error {
	counter := workCounter{}
	counter.file(src.model)
	if c.lookups += counter.lookups * len(src.visible); c.lookups > maxLookups {
		return invalidf("too many references to types across too many files")
	}
	if counter.oneofs > maxLookups {
		return invalidf("too many oneofs and optional fields in one message")
	}
	return nil
}
