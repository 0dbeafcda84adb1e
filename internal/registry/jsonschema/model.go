package jsonschema

import "freshet/internal/registry/jsontree"

// kind is the kind of a node. The rules compare only nodes of the same kind.
type kind uint8

// The kinds, with the field of body that each uses.
const (
	kindEmpty       kind = iota // {} or true: everything is valid
	kindFalse                   // false: nothing is valid
	kindString                  // text
	kindNumber                  // number; integer is a flag of it
	kindBoolean                 // no field
	kindNull                    // no field
	kindEnum                    // other.values
	kindConst                   // other.values, with one value
	kindNot                     // not
	kindObject                  // object
	kindArray                   // array
	kindCombined                // combined
	kindConditional             // if/then/else, never compared
	kindRef                     // ref
	kindMeta                    // other.address, the URI of a published metaschema
)

// node is one element of the model on which compatibility is defined. A schema object
// becomes one node. If it has several facets (for example a type and an enum), they become
// nodes under a combined node.
type node struct {
	kind   kind
	draft  draft
	src    *jsontree.Value // the schema from which it was built; nil for facets
	digest                 // of src
	meta   *meta           // nil if it would be empty
	body
}

// body has the constraints of a node. The kind of the node determines the field that is set.
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

// meta has the annotations of a node.
type meta struct {
	id, title, description string
	defaultValue           *hashed // default
	connectBytes           bool    // connect.type is bytes
}

var noMeta = &meta{}

func (n *node) about() *meta {
	if n.meta == nil {
		return noMeta
	}
	return n.meta
}

// end returns the node at the end of the references.
func (n *node) end() *node {
	if n.kind == kindRef {
		return n.ref.end
	}
	return n
}

// hasDefault reports whether the schema or the end of its references has a default.
func (n *node) hasDefault() bool {
	return n.about().defaultValue != nil || n.end().about().defaultValue != nil
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
	names      []string // names of the properties, sorted
	properties map[string]*node
	required   map[string]bool
	patterns   []patternProperty
	additional rest
	unmatched  rest // unevaluatedProperties
	minimum    *jsontree.Value
	maximum    *jsontree.Value
	arrays     map[string][]string // dependencies that are lists of names
	schemas    map[string]*node    // dependencies that are schemas
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

// rest has the constraint for properties or items that a schema does not name.
type rest struct {
	forbidden bool  // the keyword is false
	schema    *node // the keyword is a schema
}

// open reports whether there is no constraint.
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
	unique    []int // positions of the branches without duplicates
}

// hashed is a value that is compared for equality.
type hashed struct {
	value *jsontree.Value
	hash  uint64
}

// otherBody has the fields of rare kinds, to keep node small.
type otherBody struct {
	values  []*hashed // of an enum or a const
	address string    // of a metaschema
}

type refBody struct {
	target *node
	end    *node // the end of the chain of references; set by followRefs
}
