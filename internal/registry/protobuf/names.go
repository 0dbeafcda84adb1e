package protobuf

import "github.com/bufbuild/protocompile/ast"

// MessageNames returns the full names of the messages of a schema, including nested ones. It
// returns none for a text that cannot be parsed.
func MessageNames(text string) []string {
	tree, err := parseTree(rootPath, text)
	if err != nil {
		return nil
	}
	prefix := ""
	for _, decl := range tree.Decls {
		if p, ok := decl.(*ast.PackageNode); ok {
			prefix = string(p.Name.AsIdentifier()) + "."
		}
	}
	var list []string
	var add func(prefix string, m *ast.MessageNode)
	add = func(prefix string, m *ast.MessageNode) {
		name := prefix + m.Name.Val
		list = append(list, name)
		for _, decl := range m.Decls {
			if inner, ok := decl.(*ast.MessageNode); ok {
				add(name+".", inner)
			}
		}
	}
	for _, decl := range tree.Decls {
		if m, ok := decl.(*ast.MessageNode); ok {
			add(prefix, m)
		}
	}
	return list
}
