package protobuf

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/reflect/protodesc"

	"freshet.dev/client/schemas/builtin"
)

// protocFiles are the files of google/protobuf, which come with protocompile. Clients never
// upload them or the files of client/schemas/builtin, so a registry without them would reject
// real producers.
var protocFiles = []string{
	"any", "api", "compiler/plugin", "cpp_features", "descriptor", "duration", "empty", "field_mask",
	"go_features", "java_features", "source_context", "struct", "timestamp", "type", "wrappers",
}

// shadowed reports whether the built-in file is used instead of a reference of that name:
// google/protobuf is part of the language, and the other built-in files depend on it.
func shadowed(name string) bool {
	return strings.HasPrefix(name, "google/protobuf/") && builtinFile(name) != nil
}

// builtinFile returns the built-in file of that import path, or nil.
func builtinFile(name string) *source { return builtins()[name] }

// builtins parses and links the built-in files once, on first use. They are part of the
// binary, so it panics on a failure.
var builtins = sync.OnceValue(func() map[string]*source {
	files := map[string]*source{}
	for _, name := range protocFiles {
		if err := addProtocFile(files, "google/protobuf/"+name+".proto"); err != nil {
			panic(err)
		}
	}
	for _, name := range builtin.Paths() {
		if err := addBuiltin(files, name); err != nil {
			panic(err)
		}
	}
	for _, src := range files {
		for _, imp := range src.model.imports {
			src.imports = append(src.imports, files[imp.path])
		}
	}
	for _, src := range files {
		src.visible = visibleFrom(src)
	}
	return files
})

var standardFiles = protocompile.WithStandardImports(protocompile.ResolverFunc(
	func(string) (protocompile.SearchResult, error) {
		return protocompile.SearchResult{}, fs.ErrNotExist
	}))

func addProtocFile(files map[string]*source, name string) error {
	found, err := standardFiles.FindFileByPath(name)
	if err != nil {
		return fmt.Errorf("finding built-in %s: %w", name, err)
	}
	linked, err := linker.NewFileRecursive(found.Desc)
	if err != nil {
		return fmt.Errorf("loading built-in %s: %w", name, err)
	}
	model := modelOf(protodesc.ToFileDescriptorProto(found.Desc), nil)
	files[name] = &source{path: name, model: model, builtin: linked}
	return nil
}

func addBuiltin(files map[string]*source, name string) error {
	text, err := builtin.Text(name)
	if err != nil {
		return fmt.Errorf("reading built-in %s: %w", name, err)
	}
	tree, err := parseTree(name, text)
	if err != nil {
		return fmt.Errorf("parsing built-in %s: %w", name, err)
	}
	model, err := convert(tree)
	if err != nil {
		return fmt.Errorf("converting built-in %s: %w", name, err)
	}
	src := &source{path: name, model: model, text: text}
	for _, imp := range model.imports {
		src.imports = append(src.imports, files[imp.path])
	}
	linked, err := newSession().link(src)
	if err != nil {
		return fmt.Errorf("linking built-in %s: %w", name, err)
	}
	src.builtin, src.imports, src.text = linked, nil, ""
	files[name] = src
	return nil
}
