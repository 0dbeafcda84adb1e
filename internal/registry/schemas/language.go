package schemas

import (
	"bytes"
	"encoding/json"

	"freshet/internal/base/errs"
)

// language parses the schemas of one Type. Its implementations in avro.go,
// jsonschema.go and protobuf.go adapt the packages of the same names.
// comparableSchema has the common code of the last two.
type language interface {
	// parse parses a text whose references are parsed already. An imported text
	// is validated only as far as is necessary to store it.
	parse(text string, deps []dependency, imported bool, spend spendFunc) (parsedSchema, error)
}

// spendFunc counts steps of work. It returns an error when the work must end.
type spendFunc = func(steps int) error

// dependency is a reference with the parsed schema that it refers to.
type dependency struct {
	Reference
	parsed parsedSchema
}

// parsedSchema is a parsed schema. It is immutable.
type parsedSchema interface {
	// canonical returns the text that is stored.
	canonical() string
	// normalized returns the text that is stored with normalize=true.
	normalized() string
	// problems returns why reader cannot read data of this schema, in the format
	// of Confluent Schema Registry. names has the words for the two schemas.
	problems(reader parsedSchema, names roles, spend spendFunc) ([]string, error)
	// changes returns the differences when this schema follows old.
	changes(old parsedSchema, spend spendFunc) ([]Change, error)
}

// roles has the words for the two schemas of a check.
type roles struct{ reader, writer string }

var (
	newReadsOld = roles{reader: "new", writer: "old"}
	oldReadsNew = roles{reader: "old", writer: "new"}
)

// Change is one difference between two schemas.
type Change struct {
	Type       string `json:"type"`
	Path       string `json:"path,omitempty"`
	Text       string `json:"text,omitempty"`
	Compatible bool   `json:"compatible"` // the new schema still reads data of the old one
}

var languages = [...]language{Avro: avroLanguage{}, JSON: jsonLanguage{}, Protobuf: protobufLanguage{}}

// errMixed is the error of a reference to a schema of another language.
var errMixed = errs.New(errs.Invalid, "schema refers to a schema of another type")

// rawSchema is an imported text that its language does not accept. It can be
// stored and read, but not compared.
type rawSchema struct {
	text  string
	cause error
}

// parseRaw accepts an imported text that is JSON but not valid in its language.
// It returns cause for other texts.
func parseRaw(text string, cause error) (parsedSchema, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, cause
	}
	return rawSchema{text: compact.String(), cause: cause}, nil
}

func (f rawSchema) canonical() string  { return f.text }
func (f rawSchema) normalized() string { return f.text }

func (f rawSchema) problems(parsedSchema, roles, spendFunc) ([]string, error) {
	return nil, f.incomparable()
}

func (f rawSchema) changes(parsedSchema, spendFunc) ([]Change, error) { return nil, f.incomparable() }

func (f rawSchema) incomparable() error {
	return errs.Newf(errs.Invalid, "schema was imported without validation and cannot be compared: %w", f.cause)
}
