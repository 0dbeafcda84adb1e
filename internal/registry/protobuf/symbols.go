package protobuf

import "strings"

// symbol is the declaration of a full name. One of message, enum, ext and extGrp is set; all
// are nil for a service or a package, which are only namespaces.
type symbol struct {
	message *message
	enum    *enum
	ext     *field // an extension; its type is looked up in scope
	extGrp  *group // an extension declared as a group
	scope   string
	file    *source
	name    string // full, without a leading dot
}

// isNamespace reports whether the symbol can contain names.
func (s *symbol) isNamespace() bool { return s.ext == nil && s.extGrp == nil }

func (s *symbol) isType() bool { return s.message != nil || s.enum != nil }

// localName returns the name without the package of the symbol's file.
func (s *symbol) localName() string { return strings.TrimPrefix(s.name, qualify(s.file.model.pkg, "")) }

// qualify joins a scope and a name; the scope may be empty.
func qualify(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

// symbolTable has the declarations of one file that others can refer to: messages, enums,
// services and extensions.
type symbolTable struct {
	names    map[string]*symbol
	packages map[string]bool // the file's package and its prefixes
	file     *source
}

func newSymbolTable(src *source) *symbolTable {
	f := src.model
	t := &symbolTable{names: map[string]*symbol{}, packages: map[string]bool{}, file: src}
	for i := range len(f.pkg) {
		if f.pkg[i] == '.' {
			t.packages[f.pkg[:i]] = true
		}
	}
	if f.pkg != "" {
		t.packages[f.pkg] = true
	}
	t.addAll(f.pkg, f.messages, f.enums, f.extends)
	for _, s := range f.services {
		t.add(qualify(f.pkg, s.name), &symbol{})
	}
	return t
}

func (t *symbolTable) add(name string, s *symbol) {
	if _, taken := t.names[name]; taken {
		return // the linker reports duplicates
	}
	s.name, s.file = name, t.file
	t.names[name] = s
}

func (t *symbolTable) addAll(scope string, messages []*message, enums []*enum, extends []*extend) {
	for _, m := range messages {
		t.addMessage(scope, m)
	}
	for _, e := range enums {
		t.add(qualify(scope, e.name), &symbol{enum: e})
	}
	for _, e := range extends {
		for _, f := range e.fields {
			t.add(qualify(scope, f.name), &symbol{ext: f, scope: scope})
		}
		for _, g := range e.groups {
			t.add(qualify(scope, strings.ToLower(g.body.name)), &symbol{extGrp: g, scope: scope})
			t.addMessage(scope, g.body)
		}
	}
}

func (t *symbolTable) addMessage(scope string, m *message) {
	name := qualify(scope, m.name)
	t.add(name, &symbol{message: m})
	for _, g := range m.groups {
		t.addMessage(name, g.body)
	}
	for _, o := range m.oneofs {
		for _, g := range o.groups {
			t.addMessage(name, g.body)
		}
	}
	t.addAll(name, m.messages, m.enums, m.extends)
}

// find returns the symbol of that full name, a namespace symbol for a package, or nil.
func (t *symbolTable) find(name string) *symbol {
	if s := t.names[name]; s != nil {
		return s
	}
	if t.packages[name] {
		return &symbol{name: name, file: t.file}
	}
	return nil
}

// find looks up a full name in all files that are visible to src.
func (src *source) find(name string) *symbol {
	for _, s := range src.visible {
		if found := s.symbols().find(name); found != nil {
			return found
		}
	}
	return nil
}

// resolveType finds the message or enum of a name inside scope, by Protobuf's C++-like rules:
// the innermost scope that contains the first part of the name is used. It returns nil if
// the name cannot be resolved.
func (src *source) resolveType(scope, name string) *symbol {
	return src.resolve(scope, name, (*symbol).isType)
}

// resolveExtension is resolveType for the name of a custom option.
func (src *source) resolveExtension(scope, name string) *symbol {
	return src.resolve(scope, name, func(s *symbol) bool { return !s.isNamespace() })
}

func (src *source) resolve(scope, name string, want func(*symbol) bool) *symbol {
	if full, ok := strings.CutPrefix(name, "."); ok {
		if s := src.find(full); s != nil && want(s) {
			return s
		}
		return nil
	}
	first, _, dotted := strings.Cut(name, ".")
	for {
		s := src.lookup(scope, first)
		switch {
		case s == nil:
		case !dotted:
			if want(s) {
				return s
			}
		case s.isNamespace():
			if s = src.lookup(scope, name); s != nil && want(s) {
				return s
			}
			return nil
		}
		if scope == "" {
			return nil
		}
		scope = parentScope(scope)
	}
}

// lookup finds scope.name. Scopes inside the package are messages of this file; the others are
// shared by all visible files.
func (src *source) lookup(scope, name string) *symbol {
	if len(scope) > len(src.model.pkg) {
		return src.symbols().find(qualify(scope, name))
	}
	return src.find(qualify(scope, name))
}

func parentScope(scope string) string {
	if i := strings.LastIndexByte(scope, '.'); i >= 0 {
		return scope[:i]
	}
	return ""
}
