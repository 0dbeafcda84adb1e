package protobuf

import (
	"fmt"
	"slices"
	"sync"

	"github.com/bufbuild/protocompile/linker"
)

// source is one file in the closure of a schema: the schema itself, a file of a reference, or
// a built-in file. The same model can be different sources in different closures, because the
// schema at the root determines the files of import paths.
type source struct {
	path    string
	model   *file
	text    string // the author's text, "" if the linker must use the model instead
	size    int    // length of the author's text
	subject string
	version int
	builtin linker.File // set for built-in files only

	imports []*source // in the order of model.imports; nil for missing imports
	visible []*source // itself, its imports, and their public imports

	once  sync.Once
	table *symbolTable
}

func (src *source) symbols() *symbolTable {
	src.once.Do(func() { src.table = newSymbolTable(src) })
	return src.table
}

// same reports whether two sources have the same text, so that they need no comparison.
func (src *source) same(other *source) bool {
	if src.model == other.model {
		return true
	}
	return src.subject != "" && src.subject == other.subject && src.version == other.version
}

// closure collects every file that is reachable from the root, by import path. A path is one
// file per closure: the root's own references take precedence, then those of its references
// in their order. So two references that depend on different versions of a third still link,
// as in Confluent Schema Registry. Without check, unresolved references are omitted.
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

// checkClosure reports the first missing or cyclic import, and closures that are too expensive
// for the linker.
func checkClosure(root *source) error {
	c := closureCheck{paths: map[*source]int{}}
	return c.visit(root)
}

type closureCheck struct {
	paths   map[*source]int // public paths below a file; -1 while it is visited
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

// missingImport is the error of an import without a reference or built-in file.
type missingImport struct{ from, path string }

func (e *missingImport) Error() string {
	if e.from == rootPath {
		return fmt.Sprintf("import %q is not built in, and no reference has that name", e.path)
	}
	return fmt.Sprintf("%q, which this schema references, imports %q, and no reference has that name", e.from, e.path)
}

func (e *missingImport) Unwrap() error { return ErrInvalid }

// count limits the work that grows faster than the size of a file: resolving names, and
// finding the members of oneofs.
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
