package protobuf

// The model is a .proto file as its author wrote it, without comments and layout: it keeps
// type names (symbols.go resolves them) and the numbers in option values as written. It is
// immutable, so that schemas can share it.

// file is one .proto file.
type file struct {
	syntax   string // "proto2", "proto3", or "" if the file has no syntax statement
	edition  string // for example "2023"; syntax is then ""
	pkg      string
	imports  []importDecl
	options  []option
	messages []*message
	enums    []*enum
	extends  []*extend
	services []*service
	custom   bool // an option name contains the name of an extension
}

func (f *file) empty() bool {
	return f.syntax+f.edition+f.pkg == "" && len(f.imports)+len(f.options)+len(f.messages)+len(f.enums)+
		len(f.extends)+len(f.services) == 0
}

type importKind uint8

const (
	importPlain importKind = iota
	importPublic
	importWeak
)

type importDecl struct {
	path string
	kind importKind
}

// message is a message, or the body of a group.
type message struct {
	name       string
	order      int // index among the sibling messages and groups, which records contain
	reserved   []reserved
	options    []option
	fields     []*field // including map fields, without oneof members and groups
	oneofs     []*oneof
	groups     []*group
	extensions []extensionRange
	extends    []*extend
	messages   []*message
	enums      []*enum
}

type label uint8

const (
	labelNone label = iota
	labelOptional
	labelRequired
	labelRepeated
)

var labelWords = [...]string{"", "optional ", "required ", "repeated "}

type field struct {
	label   label
	key     string // the key type of a map field, "" for any other field
	typ     string // as written; the value type of a map field
	name    string
	tag     int64
	options []option
}

func (f *field) isMap() bool { return f.key != "" }

// group is a proto2 group: a field and its message in one declaration.
type group struct {
	label   label
	tag     int64
	options []option
	body    *message
}

type oneof struct {
	name    string
	options []option
	fields  []*field
	groups  []*group
}

type enum struct {
	name     string
	reserved []reserved
	options  []option
	values   []enumValue
}

type enumValue struct {
	name    string
	number  int64
	options []option
}

type extend struct {
	extendee string
	fields   []*field
	groups   []*group
}

type service struct {
	name    string
	options []option
	methods []*method
}

type method struct {
	name          string
	input, output string
	clientStreams bool // stream on the input
	serverStreams bool // stream on the output
	options       []option
}

// reserved is one `reserved` statement: ranges or names, never both.
type reserved struct {
	ranges []tagRange
	names  []string
	idents bool // names are identifiers, as editions require, instead of strings
}

// tagRange is inclusive at both ends. single distinguishes `5` from `5 to 5`.
type tagRange struct {
	start, end int64
	single     bool
}

// The values of `max` in ranges.
const (
	maxFieldTag   = 1<<29 - 1
	maxEnumNumber = 1<<31 - 1
)

// extensionRange is one `extensions` statement.
type extensionRange struct {
	ranges  []tagRange
	options []option
}

// option is `(a.b).c = value`, from an option statement or a bracketed list.
type option struct {
	name []namePart
	val  value
}

type namePart struct {
	name string
	ext  bool // written in parentheses: the name of an extension
}

// plain reports whether o is the built-in option of that name.
func (o option) plain(name string) bool {
	return len(o.name) == 1 && !o.name[0].ext && o.name[0].name == name
}

type valueKind uint8

const (
	valueIdent  valueKind = iota // true, FULL, inf; text is the word with its sign
	valueNumber                  // text is the literal with its sign
	valueString                  // text is the unescaped bytes
	valueList
	valueMessage
)

type value struct {
	kind   valueKind
	text   string
	list   []value
	fields []literalField
}

// literalField is one `key: value` of a message literal.
type literalField struct {
	name string
	ext  bool   // [name]
	url  string // [url/name], an expanded Any
	val  value
}

// key returns the printed name of the field.
func (f literalField) key() string {
	switch {
	case f.url != "":
		return "[" + f.url + "/" + f.name + "]"
	case f.ext:
		return "[" + f.name + "]"
	default:
		return f.name
	}
}

// mapEntry reports whether m is an explicit entry type of a map. Java clients send maps in
// this form, which protoc rejects.
func (m *message) mapEntry() bool {
	for _, o := range m.options {
		if o.plain("map_entry") {
			return o.val.kind == valueIdent && o.val.text == "true"
		}
	}
	return false
}
