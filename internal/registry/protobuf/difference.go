package protobuf

import "fmt"

// Difference is one difference between an old and a new schema. Path consists of the names
// of messages and oneofs and of the tag of a field or value, for example #/Order/3.
type Difference struct {
	Type, Path string
	Compatible bool
}

// The types of differences (docs/spec/registry.md#protobuf-compatibility).
const (
	packageChanged           = "PACKAGE_CHANGED"
	messageAdded             = "MESSAGE_ADDED"
	messageRemoved           = "MESSAGE_REMOVED"
	messageMoved             = "MESSAGE_MOVED"
	enumAdded                = "ENUM_ADDED"
	enumRemoved              = "ENUM_REMOVED"
	enumConstAdded           = "ENUM_CONST_ADDED"
	enumConstChanged         = "ENUM_CONST_CHANGED"
	enumConstRemoved         = "ENUM_CONST_REMOVED"
	fieldAdded               = "FIELD_ADDED"
	fieldRemoved             = "FIELD_REMOVED"
	fieldNameChanged         = "FIELD_NAME_CHANGED"
	fieldKindChanged         = "FIELD_KIND_CHANGED"
	fieldScalarKindChanged   = "FIELD_SCALAR_KIND_CHANGED"
	fieldNamedTypeChanged    = "FIELD_NAMED_TYPE_CHANGED"
	fieldNumericLabelChanged = "FIELD_NUMERIC_LABEL_CHANGED"
	fieldStringLabelChanged  = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
	requiredFieldAdded       = "REQUIRED_FIELD_ADDED"
	requiredFieldRemoved     = "REQUIRED_FIELD_REMOVED"
	oneofAdded               = "ONEOF_ADDED"
	oneofRemoved             = "ONEOF_REMOVED"
	oneofFieldAdded          = "ONEOF_FIELD_ADDED"
	oneofFieldRemoved        = "ONEOF_FIELD_REMOVED"
	oneofFieldMovedToTop     = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
	fieldsMovedToOneof       = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
	fieldMovedToOldOneof     = "FIELD_MOVED_TO_EXISTING_ONEOF"
)

// wordings has the description of every incompatible type; the indexed verbs are path, new
// and old. The texts are those of Confluent Schema Registry, including their irregular
// spaces and colons.
var wordings = map[string]string{
	packageChanged:   "The package at '%[1]s' in the %[2]s schema does not match the package in the %[3]s schema",
	messageRemoved:   "The %[2]s schema is missing a MESSAGE type at path '%[1]s' in the %[3]s schema",
	fieldKindChanged: "The type of a field at path '%[1]s' in the %[2]s schema does not match the %[3]s schema",
	fieldScalarKindChanged: "The kind of a SCALAR field at path '%[1]s' in the %[2]s schema does not match its " +
		"kind in the %[3]s schema",
	fieldNamedTypeChanged: "The type of a MESSAGE field at path '%[1]s' in the %[2]s schema does not match its " +
		"type in the %[3]s schema",
	fieldNumericLabelChanged: "The label for a NUMERIC field at path '%[1]s' in the %[2]s schema does not match its " +
		"label in the %[3]s schema",
	requiredFieldAdded:   "A required field  at path '%[1]s' in the %[2]s schema is missing in the %[3]s schema",
	requiredFieldRemoved: "The %[2]s schema is missing a required field at path: '%[1]s' in the %[3]s schema",
	oneofFieldRemoved:    "The %[2]s schema is missing a oneof field at path '%[1]s' in the %[3]s schema",
	fieldsMovedToOneof: "Multiple fields in the oneof at path '%[1]s' in the %[2]s schema are outside a oneof " +
		"in the %[3]s schema",
	fieldMovedToOldOneof: "A field in the oneof at path '%[1]s' in the %[2]s schema is outside an existing " +
		"oneof in the %[3]s schema",
}

// newDifference returns a difference. The types without a wording are compatible.
func newDifference(typ, path string) Difference {
	_, breaks := wordings[typ]
	return Difference{Type: typ, Path: path, Compatible: !breaks}
}

// String describes the difference in the backward direction.
func (d Difference) String() string { return d.Describe("new", "old") }

// Describe formats the difference as Confluent Schema Registry does. In the forward
// direction, in which the roles of the schemas are exchanged, call Describe("old", "new").
func (d Difference) Describe(newName, oldName string) string {
	text := ""
	if wording := wordings[d.Type]; wording != "" {
		text = fmt.Sprintf(wording, d.Path, newName, oldName)
	}
	return fmt.Sprintf(`{errorType:"%s", description:"%s"}`, d.Type, text)
}
