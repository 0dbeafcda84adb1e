package jsonschema

import "freshet/internal/registry/jsontree"

// kind is the class of a node. Compatibility compares only nodes of one class.
type kind uint8

const (
	kindEmpty       kind = iota // {} or true: everything is valid
	kindFalse                   // false: nothing is
	kindString                  // says text
	kindNumber                  // says number; integer is a flag of it
	kindBoolean                 // says nothing
	kindNull                    // says nothing
	kindEnum                    // says other.values
	kindConst                   // says other.values, of which there is one
	kindNot                     // says not
	kindObject                  // says object
	kindArray                   // says array
	kindCombined                // says combined
	kindConditional             // if/then/else, never compared
	kindRef                     // says ref
	kindMeta                    // says other.address, that of a published metaschema
)

// node is one element of the model that compatibility is defined on. A schema
// object becomes one node; if it speaks of several things at once (say, a type
// and an enum), those become facets under a combined node.
type node struct {
	kind   kind
	draft  draft
	src    *jsontree.Value // the schema it was made from; nil for facets
	digest                 // of src
	meta   *meta           // nil when there is nothing in it
	body
}

// body is what a node says about documents; its kind tells in which field.
type body struct {
	text     *stringBody
	number   *numberBody
	object   *objectBody
	array    *arrayBody
	combined *combinedBody
	ref      *refBody
	not      *node
	other    *otherBody
}

// meta is what a node says about itself rather than about documents.
type meta struct {
	id, title, description string
	fallback               *hashed // default
	connectBytes           bool    // connect.type is bytes
}

var noMeta = &meta{}

func (n *node) about() *meta {
	if n.meta == nil {
		return noMeta
	}
	return n.meta
}

// end follows references to the node that says something.
func (n *node) end() *node {
	if n.kind == kindRef {
		return n.ref.end
	}
	return n
}

// hasDefault says whether a property of this schema has a default, on itself or
// behind its reference.
func (n *node) hasDefault() bool {
	return n.about().fallback != nil || n.end().about().fallback != nil
}

type stringBody struct {
	minLength, maxLength *jsontree.Value
	pattern              *jsontree.Value
}

type numberBody struct {
	minimum, maximum                   *jsontree.Value
	exclusiveMinimum, exclusiveMaximum *jsontree.Value
	multipleOf                         *jsontree.Value
	integer                            bool
}

type objectBody struct {
	names      []string // of the properties, sorted
	properties map[string]*node
	required   map[string]bool
	patterns   []patternProperty
	additional rest
	unmatched  rest // unevaluatedProperties
	minimum    *jsontree.Value
	maximum    *jsontree.Value
	arrays     map[string][]string // dependencies on names
	schemas    map[string]*node    // dependencies on schemas
}

type patternProperty struct {
	pattern *pattern
	node    *node
}

type arrayBody struct {
	all         *node   // the schema of every item
	tuple       []*node // the schemas of the first items
	additional  rest
	unmatched   rest // unevaluatedItems
	minimum     *jsontree.Value
	maximum     *jsontree.Value
	minContains *jsontree.Value
	maxContains *jsontree.Value
	unique      bool
}

// rest is what a schema says of properties or items it does not name.
type rest struct {
	forbidden bool  // the keyword is false
	schema    *node // the keyword is a schema
}

// open says whether anything goes.
func (r rest) open() bool { return !r.forbidden && r.schema == nil }

// criterion is the keyword of a combined node.
type criterion uint8

const (
	allOf criterion = iota
	anyOf
	oneOf
)

var criterionNames = [...]string{allOf: "allOf", anyOf: "anyOf", oneOf: "oneOf"}

func (c criterion) String() string { return criterionNames[c] }

type combinedBody struct {
	criterion criterion
	branches  []*node
	unique    []int // positions of the branches left when duplicates go
}

// hashed is a value that is compared for equality.
type hashed struct {
	value *jsontree.Value
	hash  uint64
}

// otherBody holds what is too rare to have a field in every node.
type otherBody struct {
	values  []*hashed // of an enum or a const
	address string    // of a metaschema
}

type refBody struct {
	target *node
	end    *node // the target behind all references; set when the model is done
}
