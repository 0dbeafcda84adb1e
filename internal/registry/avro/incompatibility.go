package avro

import "strings"

// The types of incompatibility. The first six are Java's.
const (
	NameMismatch          = "NAME_MISMATCH"
	FixedSizeMismatch     = "FIXED_SIZE_MISMATCH"
	MissingEnumSymbols    = "MISSING_ENUM_SYMBOLS"
	ReaderFieldNoDefault  = "READER_FIELD_MISSING_DEFAULT_VALUE"
	TypeMismatch          = "TYPE_MISMATCH"
	MissingUnionBranch    = "MISSING_UNION_BRANCH"
	AmbiguousFieldAliases = "" // no type: Java throws an exception

	// LimitExceeded means that two schemas are too large or too deeply linked to be
	// compared. It is the only problem of its check.
	LimitExceeded = "LIMIT_EXCEEDED"
)

// Incompatibility is one reason why a reader cannot read a writer's data.
type Incompatibility struct {
	Type    string // one of the constants
	Message string // detail: a name, a pair of types, the missing symbols
	Path    string // JSON pointer into the reader's schema
}

// Describe formats the problem as Confluent Schema Registry does. reader and writer are the
// words for the two schemas ("new" and "old").
func (i Incompatibility) Describe(reader, writer string) string {
	if i.Type == AmbiguousFieldAliases {
		return "Unexpected exception during compatibility check: " + i.Message
	}
	return "{errorType:'" + i.Type + "', description:'" + i.description(reader, writer) +
		"', additionalInfo:'" + i.Message + "'}"
}

func (i Incompatibility) description(reader, writer string) string {
	var text string
	switch i.Type {
	case FixedSizeMismatch:
		text = "The size of FIXED type field at path '{path}' in the {reader} schema does not match with the " +
			"{writer} schema"
	case TypeMismatch:
		text = "The type (path '{path}') of a field in the {reader} schema does not match with the {writer} schema"
	case NameMismatch:
		text = "The name of the schema has changed (path '{path}')"
	case MissingEnumSymbols:
		text = "The {reader} schema is missing enum symbols '{message}' at path '{path}' in the {writer} schema"
	case MissingUnionBranch:
		text = "The {reader} schema is missing a type inside a union field at path '{path}' in the {writer} schema"
	case ReaderFieldNoDefault:
		text = "The field '{message}' at path '{path}' in the {reader} schema has no default value and is missing " +
			"in the {writer} schema"
	default:
		text = "The {reader} schema and the {writer} schema are too large or too deeply linked to be compared"
	}
	return strings.NewReplacer("{path}", i.Path, "{message}", i.Message, "{reader}", reader, "{writer}",
		writer).Replace(text)
}
