package protobuf

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes random .proto files that protoc accepts. The files contain
// every kind of declaration in any order, custom options, unusual layout and
// comments.
type generator struct {
	*rand.Rand
	syntax string // proto2, proto3 or editions
	pkg    string
	next   int
	types  []string // full names of the messages
	enums  map[string][]string
}

const annotations = `
message Meta {
  %[1]sstring doc = 1;
  repeated string tags = 2;
  %[1]sdouble weight = 3;
  %[1]sMeta inner = 4;
  map<string, int32> params = 5;
  repeated Meta more = 6;
  %[1]sLevel level = 7;
  %[1]sbytes raw = 8;
  enum Level { LOW = 0; HIGH = 1; }
}
extend google.protobuf.FieldOptions { %[1]sMeta meta = 50001; repeated string note = 50002; }
extend google.protobuf.MessageOptions { %[1]sMeta about = 50001; repeated Meta facts = 50002; }
extend google.protobuf.FileOptions { %[1]sMeta origin = 50001; }
extend google.protobuf.EnumOptions { %[1]sint64 rank = 50001; }
extend google.protobuf.EnumValueOptions { %[1]sMeta value_meta = 50001; }
extend google.protobuf.OneofOptions { %[1]sbool exclusive = 50001; }
extend google.protobuf.MethodOptions { %[1]sfloat cost = 50001; }
extend google.protobuf.ServiceOptions { %[1]sstring owner = 50001; }
`

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), enums: map[string][]string{}}
	g.syntax = pick(g, "proto2", "proto3", "proto3", "editions")
	g.pkg = pick(g, "", "acme", "acme.orders.v1")
	return g
}

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) name(prefix string) string {
	g.next++
	return fmt.Sprintf("%s%d", prefix, g.next)
}

func (g *generator) optional() string {
	if g.syntax == "proto2" {
		return "optional "
	}
	return ""
}

// file returns a whole file. It chooses the names of the messages first, so that
// any field can use any of them.
func (g *generator) file() string {
	header := map[string]string{
		"proto2": pick(g, `syntax = "proto2";`, ``), "proto3": `syntax = 'proto3';`, "editions": `edition = "2023";`,
	}[g.syntax]
	decls := []string{
		`import "google/protobuf/descriptor.proto";`, pick(g, `import public "google/protobuf/any.proto";`, ``),
		`import "google/protobuf/timestamp.proto";`,
		fmt.Sprintf(annotations, g.optional()),
	}
	if g.pkg != "" {
		decls = append(decls, "package "+g.pkg+";")
	}
	for range g.IntN(3) {
		e := g.name("Kind")
		g.enums[g.full(e)] = nil
		decls = append(decls, g.enum(g.pkg, e))
	}
	names := make([]string, 1+g.IntN(4))
	for i := range names {
		names[i] = g.name("Item")
		g.types = append(g.types, g.full(names[i]))
	}
	for _, name := range names {
		decls = append(decls, g.message(g.pkg, name, 0))
	}
	decls = append(decls, g.fileOptions()...)
	if g.chance(40) {
		decls = append(decls, g.service())
	}
	g.Shuffle(len(decls), func(i, j int) { decls[i], decls[j] = decls[j], decls[i] })
	return header + "\n" + g.joinRandomly(decls)
}

func (g *generator) full(name string) string { return qualify(g.pkg, name) }

// joinRandomly joins declarations with random white space, comments and empty statements.
func (g *generator) joinRandomly(decls []string) string {
	var b strings.Builder
	for _, d := range decls {
		b.WriteString(d)
		b.WriteString(pick(g, "\n", " ", "\n\n", " // { not a brace\n", "/* \" */", "\n;\n"))
	}
	return b.String()
}

func (g *generator) fileOptions() []string {
	all := []string{
		`option java_package = "com.acme";`, `option go_package = "acme/\"v1\"\n";`, `option optimize_for = CODE_SIZE;`,
		`option cc_enable_arenas = false;`, `option (origin).doc = "a" 'b';`, `option (origin).inner.tags = "x";`,
		`option (origin).inner.tags = "y";`,
	}
	return all[:g.IntN(len(all)+1)]
}

func (g *generator) enum(scope, name string) string {
	values := make([]string, 0, 4)
	for i := range 1 + g.IntN(4) {
		v := g.name("VALUE_")
		number := pick(g, i, i*7, i*1000)
		values = append(values, fmt.Sprintf("%s = %d%s;", v, number, g.valueOptions()))
		g.enums[qualify(scope, name)] = append(g.enums[qualify(scope, name)], v)
	}
	if g.chance(30) {
		values = append(values, pick(g, `option deprecated = true;`, `option (rank) = -0x1F;`))
	}
	if g.chance(30) {
		values = append(values, "reserved 90000 to max, 80000, -5 to -1;", g.reservedNames())
	}
	rest := values[1:] // zero stays first
	g.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return "enum " + name + " {" + g.joinRandomly(values) + "}"
}

func (g *generator) reservedNames() string {
	if g.syntax == "editions" {
		return "reserved foo, bar;"
	}
	return `reserved "foo", 'bar';`
}

func (g *generator) valueOptions() string {
	return pick(g, "", "", " [deprecated = true]", ` [(value_meta) = {doc: "v", weight: 1.50}]`)
}

func (g *generator) message(scope, name string, depth int) string {
	full := qualify(scope, name)
	tags := g.Perm(60)
	take := func() int { tag := tags[0] + 1; tags = tags[1:]; return tag }
	var decls []string
	for range g.IntN(5) {
		decls = append(decls, g.field(full, take()))
	}
	for range g.IntN(2) {
		decls = append(decls, fmt.Sprintf("map<%s, %s> %s = %d%s;",
			pick(g, "string", "int32", "bool"), g.typ(full), g.name("map_"), take(), g.fieldOptions()))
	}
	for range g.IntN(2) {
		members := []string{g.oneofMember(full, take()), g.oneofMember(full, take())}
		if g.chance(30) {
			members = append(members, "option (exclusive) = true;")
		}
		if g.syntax == "proto2" && g.chance(30) {
			members = append(members, fmt.Sprintf("group %s = %d {optional int32 g = 1;}", g.name("Choice"), take()))
		}
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		decls = append(decls, "oneof "+g.name("choice_")+" {"+strings.Join(members, pick(g, " ", "\n", "/**/"))+"}")
	}
	decls = append(decls, g.otherDeclarations(full, take)...)
	if depth < 2 && g.chance(40) {
		nested := g.name("Nested")
		decls = append(decls, g.message(full, nested, depth+1))
		g.types = append(g.types, qualify(full, nested))
	}
	if g.chance(30) {
		decls = append(decls, g.enum(full, g.name("Inner")))
	}
	g.Shuffle(len(decls), func(i, j int) { decls[i], decls[j] = decls[j], decls[i] })
	return "message " + name + " {" + g.joinRandomly(decls) + "}"
}

// otherDeclarations returns the declarations of a message that are not fields.
func (g *generator) otherDeclarations(full string, take func() int) []string {
	var decls []string
	if g.chance(30) {
		decls = append(decls, "reserved 100, 200 to 210, 5000 to 5000;", g.reservedNames())
	}
	if g.chance(30) {
		decls = append(decls,
			pick(g, "option deprecated = true;", `option (about) = {doc: "m" tags: ["a", "b"] tags: "c"};`,
				`option (facts) = {level: HIGH}; option (facts) = {raw: "\377\000'"};`))
	}
	if g.syntax == "proto3" {
		return decls
	}
	if g.chance(40) {
		decls = append(decls, "extensions 1000 to 1999, 6000 to max;",
			fmt.Sprintf("extend %s { %sint32 %s = %d; }", full, g.optional(), g.name("ext_"), 1000+g.next))
	}
	if g.syntax == "proto2" && g.chance(30) {
		decls = append(decls, fmt.Sprintf("%s group %s = %d %s{ optional string s = 1; message Deep { } }",
			pick(g, "optional", "repeated", "required"), g.name("Grp"), take(), pick(g, "", "[deprecated = true]")))
	}
	return decls
}

func (g *generator) typ(scope string) string {
	if g.chance(50) {
		return pick(g, "int32", "string", "bytes", "double", "sfixed64", "bool", "uint32")
	}
	name := pick(g, append([]string{"google.protobuf.Timestamp"}, g.types...)...)
	switch {
	case g.chance(50):
		return "." + name
	case g.pkg != "" && g.chance(50):
		return strings.TrimPrefix(name, g.pkg+".")
	}
	return name
}

func (g *generator) field(scope string, tag int) string {
	label := map[string][]string{
		"proto2": {"optional ", "repeated ", "required "}, "proto3": {"", "optional ", "repeated "},
		"editions": {"", "repeated "},
	}[g.syntax]
	chosen := pick(g, label...)
	if g.syntax == "proto2" && chosen == "optional " && g.chance(30) {
		return fmt.Sprintf("optional %s %s = %d [%s];", "string", g.name("field_"), tag, `default = "a\"b\t\001é"`)
	}
	number := fmt.Sprintf(pick(g, "%d", "0x%x", "0%o"), tag)
	return fmt.Sprintf("%s%s %s = %s%s;", chosen, g.typ(scope), g.name("field_"), number, g.fieldOptions())
}

func (g *generator) oneofMember(scope string, tag int) string {
	return fmt.Sprintf("%s %s = %d%s;", g.typ(scope), g.name("pick_"), tag, g.fieldOptions())
}

func (g *generator) fieldOptions() string {
	if g.chance(50) {
		return ""
	}
	all := []string{
		"deprecated = true", `json_name = "` + g.name("json") + `"`, `(note) = "n1"`, `(note) = 'n2'`,
		pick(g, `(meta) = {doc: "d" weight: -1.250e2, inner < tags: [] level: HIGH >, params: {key: "k" value: 0x10}}`,
			`(meta).doc = "d", (meta).inner.weight = 1e30, (meta).inner.inner.level = LOW`,
			`(meta).weight = -inf, (meta).more = {doc: 'x'}, (meta).more = {weight: nan}`),
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return " [" + strings.Join(all[:1+g.IntN(len(all))], ", ") + "]"
}

func (g *generator) service() string {
	var decls []string
	for range g.IntN(3) {
		stream := pick(g, "", "stream ")
		decls = append(decls, fmt.Sprintf("rpc %s(%s.%s) returns (%s.%s)%s", g.name("Do"),
			stream, pick(g, g.types...), pick(g, "", "stream "), pick(g, g.types...),
			pick(g, ";", "{}", " { option (cost) = 1.50; option deprecated = true; }")))
	}
	if g.chance(50) {
		decls = append(decls, `option (owner) = "me";`)
	}
	return "service " + g.name("Svc") + " {" + g.joinRandomly(decls) + "}"
}
