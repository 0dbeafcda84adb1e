package schemas

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"freshet/internal/schemas/avro"
)

// maxChanges bounds the list of changes.
const maxChanges = 10_000

// avroDiff walks two Avro schemas side by side and notes every difference, also
// those that no reader minds. What a reader minds is Check's to say: a change
// is incompatible when Check has a problem at its place.
type avroDiff struct {
	oldNames, newNames map[string]map[string]any // definitions of named types
	seen               map[[2]string]bool        // pairs of named types that are being compared
	problems           []avro.Incompatibility
	changes            []Change
}

// avroChanges lists what differs when next follows old.
func avroChanges(old, next avroForm) ([]Change, error) {
	d := &avroDiff{
		oldNames: map[string]map[string]any{}, newNames: map[string]map[string]any{},
		seen:     map[[2]string]bool{},
		problems: avro.Check(next.Schema, old.Schema),
	}
	var trees [2]any
	for i, f := range []avroForm{old, next} {
		if err := json.Unmarshal([]byte(f.resolved()), &trees[i]); err != nil {
			return nil, err
		}
	}
	collectNames(trees[0], d.oldNames)
	collectNames(trees[1], d.newNames)
	d.compare("", "/", trees[0], trees[1])
	return d.changes, nil
}

// collectNames finds the definitions of named types; in the normalized text
// their names are full names.
func collectNames(tree any, names map[string]map[string]any) {
	switch t := tree.(type) {
	case []any:
		for _, branch := range t {
			collectNames(branch, names)
		}
	case map[string]any:
		if name, ok := t["name"].(string); ok {
			names[name] = t
		}
		collectNames(t["items"], names)
		collectNames(t["values"], names)
		for _, f := range asList(t["fields"]) {
			collectNames(asObject(f)["type"], names)
		}
		if _, nested := t["type"].(string); !nested {
			collectNames(t["type"], names)
		}
	}
}

func asList(v any) []any              { l, _ := v.([]any); return l }
func asObject(v any) map[string]any   { o, _ := v.(map[string]any); return o }
func asText(v any) string             { s, _ := v.(string); return s }
func show(v any) string               { b, _ := json.Marshal(v); return clip(string(b), 200) }
func member(o any, key string) any    { return asObject(o)[key] }
func has(o any, key string) bool      { _, ok := asObject(o)[key]; return ok }
func pointer(at, token string) string { return strings.TrimSuffix(at, "/") + "/" + token }

// note adds a change. place is where Check would report a problem with it, empty
// for a change that no reader minds.
func (d *avroDiff) note(kind, path, place, format string, args ...any) {
	if len(d.changes) == maxChanges {
		return
	}
	if path == "" {
		path = "/"
	}
	change := Change{Type: kind, Path: path, Text: fmt.Sprintf(format, args...), Compatible: true}
	if place != "" {
		change.Compatible = !slices.ContainsFunc(d.problems, func(p avro.Incompatibility) bool { return concerns(p, place) })
	}
	d.changes = append(d.changes, change)
}

// concerns says whether a problem is at a place, below it, or is that of the
// union branch around it, inside of which Check does not say more.
func concerns(p avro.Incompatibility, place string) bool {
	below := func(a, b string) bool { return strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") }
	return p.Path == place || below(p.Path, place) || p.Type == avro.MissingUnionBranch && below(place, p.Path)
}

// kind is the type of a schema: a primitive, record, enum, fixed, array, map or
// union.
func kind(tree any) string {
	switch t := tree.(type) {
	case []any:
		return "union"
	case map[string]any:
		if inner, ok := t["type"].(string); ok {
			return inner
		}
		return kind(t["type"])
	}
	return asText(tree)
}

// define turns the name of a type into its definition.
func define(tree any, names map[string]map[string]any) any {
	name := asText(tree)
	if o := asObject(tree); name == "" && len(o) == 1 {
		name = asText(o["type"])
	}
	if def, ok := names[name]; ok {
		return def
	}
	return tree
}

func (d *avroDiff) compare(path, at string, old, next any) {
	old, next = define(old, d.oldNames), define(next, d.newNames)
	oldKind, newKind := kind(old), kind(next)
	if oldKind != newKind {
		d.note("TYPE_CHANGED", path, at, "%s became %s", describeType(old), describeType(next))
		return
	}
	if pair := [2]string{asText(member(old, "name")), asText(member(next, "name"))}; pair[0] != "" {
		if d.seen[pair] {
			return
		}
		d.seen[pair] = true
		d.named(path, at, old, next)
	}
	if a, b := asText(member(old, "logicalType")), asText(member(next, "logicalType")); a != b {
		d.note("LOGICAL_TYPE_CHANGED", path, "", "logical type %q became %q", a, b)
	}
	switch oldKind {
	case "record", "error":
		d.fields(path, at, old, next)
	case "enum":
		d.symbols(path, at, old, next)
	case "fixed":
		if a, b := show(member(old, "size")), show(member(next, "size")); a != b {
			d.note("SIZE_CHANGED", path, pointer(at, "size"), "size %s became %s", a, b)
		}
	case "array":
		d.compare(path+"[]", pointer(at, "items"), member(old, "items"), member(next, "items"))
	case "map":
		d.compare(path+"{}", pointer(at, "values"), member(old, "values"), member(next, "values"))
	case "union":
		d.branches(path, at, asList(old), asList(next))
	}
}

func describeType(tree any) string {
	if name := asText(member(tree, "name")); name != "" {
		return kind(tree) + " " + name
	}
	return kind(tree)
}

func (d *avroDiff) named(path, at string, old, next any) {
	if a, b := asText(member(old, "name")), asText(member(next, "name")); a != b {
		d.note("NAME_CHANGED", path, pointer(at, "name"), "%s became %s", a, b)
	}
	if a, b := asText(member(old, "doc")), asText(member(next, "doc")); a != b {
		d.note("DOC_CHANGED", path, "", "the documentation changed")
	}
	if a, b := show(member(old, "aliases")), show(member(next, "aliases")); a != b {
		d.note("ALIASES_CHANGED", path, "", "aliases %s became %s", a, b)
	}
}

func (d *avroDiff) fields(path, at string, old, next any) {
	before := map[string]any{}
	for _, f := range asList(member(old, "fields")) {
		before[asText(member(f, "name"))] = f
	}
	after := map[string]bool{}
	for i, f := range asList(member(next, "fields")) {
		name := asText(member(f, "name"))
		after[name] = true
		where, place := pointer(path, name), pointer(at, fmt.Sprintf("fields/%d", i))
		b, ok := before[name]
		if !ok {
			added := describeType(define(member(f, "type"), d.newNames))
			if has(f, "default") {
				d.note("FIELD_ADDED", where, "", "field %s of type %s was added, with a default", name, added)
			} else {
				d.note("FIELD_ADDED", where, place, "field %s of type %s was added, without a default", name, added)
			}
			continue
		}
		if a, b := show(member(b, "default")), show(member(f, "default")); a != b || has(f, "default") != has(before[name], "default") {
			d.note("DEFAULT_CHANGED", where, "", "default %s became %s", a, b)
		}
		if a, b := asText(member(b, "doc")), asText(member(f, "doc")); a != b {
			d.note("DOC_CHANGED", where, "", "the documentation changed")
		}
		d.compare(where, pointer(place, "type"), member(b, "type"), member(f, "type"))
	}
	for _, f := range asList(member(old, "fields")) {
		if name := asText(member(f, "name")); !after[name] {
			d.note("FIELD_REMOVED", pointer(path, name), "", "field %s was removed", name)
		}
	}
}

func (d *avroDiff) symbols(path, at string, old, next any) {
	before, after := map[string]bool{}, map[string]bool{}
	for _, s := range asList(member(old, "symbols")) {
		before[asText(s)] = true
	}
	for _, s := range asList(member(next, "symbols")) {
		after[asText(s)] = true
		if !before[asText(s)] {
			d.note("SYMBOL_ADDED", path, "", "symbol %s was added", asText(s))
		}
	}
	for _, s := range asList(member(old, "symbols")) {
		if !after[asText(s)] {
			d.note("SYMBOL_REMOVED", path, pointer(at, "symbols"), "symbol %s was removed", asText(s))
		}
	}
	if a, b := asText(member(old, "default")), asText(member(next, "default")); a != b {
		d.note("DEFAULT_CHANGED", path, "", "default %q became %q", a, b)
	}
}

func (d *avroDiff) branches(path, at string, old, next []any) {
	after := map[string]any{}
	for _, branch := range next {
		after[describeType(define(branch, d.newNames))] = branch
	}
	for i, branch := range old {
		key, place := describeType(define(branch, d.oldNames)), pointer(at, fmt.Sprint(i))
		other, ok := after[key]
		if !ok {
			d.note("BRANCH_REMOVED", path, place, "%s was removed from the union", key)
			continue
		}
		delete(after, key)
		d.compare(path, place, branch, other)
	}
	for _, branch := range next {
		if key := describeType(define(branch, d.newNames)); after[key] != nil {
			d.note("BRANCH_ADDED", path, "", "%s was added to the union", key)
		}
	}
}
