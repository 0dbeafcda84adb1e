package schemas

import (
	"bytes"
	"encoding/json"

	"freshet/internal/base/errs"
)

// language reads the schemas of one Type. The adapters in avro.go,
// jsonschema.go and protobuf.go are the only ones that know the sub-packages;
// what the last two have in common is comparedform.go.
type language interface {
	// parse reads a text whose references are read already. An imported text
	// is not validated further than it takes to store it. It spends steps.
	parse(text string, deps []dependency, imported bool, spend spending) (form, error)
}

// spending counts steps of work, and says when there were enough.
type spending = func(steps int) error

// dependency is a reference with the schema it means.
type dependency struct {
	Reference
	form form
}

// form is a parsed schema. It is immutable.
type form interface {
	// canonical is the text under which the schema is stored.
	canonical() string
	// normalized is the text under which it is stored with normalize=true.
	normalized() string
	// problems says why reader cannot read what this schema writes, in the
	// words of clients; names tells which of the two is the new one.
	problems(reader form, names roles, spend spending) ([]string, error)
	// changes lists what differs when this schema follows old.
	changes(old form, spend spending) ([]Change, error)
}

// roles are the words for the two schemas of a check.
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
	Compatible bool   `json:"compatible"` // readers of the new schema are not disturbed
}

var languages = [...]language{Avro: avroLanguage{}, JSON: jsonLanguage{}, Protobuf: protobufLanguage{}}

// errMixed is a reference to a schema of another language.
var errMixed = errs.New(errs.Invalid, "a schema can only refer to schemas of its own type")

// rawForm is an imported text that its language does not accept. It can be
// stored and read, and compared with nothing.
type rawForm struct {
	text  string
	cause error
}

// parseRaw keeps an imported JSON text that has a meaning only elsewhere.
func parseRaw(text string, cause error) (form, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, cause
	}
	return rawForm{text: compact.String(), cause: cause}, nil
}

func (f rawForm) canonical() string  { return f.text }
func (f rawForm) normalized() string { return f.text }

func (f rawForm) problems(form, roles, spending) ([]string, error) { return nil, f.incomparable() }
func (f rawForm) changes(form, spending) ([]Change, error)         { return nil, f.incomparable() }

func (f rawForm) incomparable() error {
	return errs.Newf(errs.Invalid, "a schema that was imported without validation cannot be compared: %w", f.cause)
}
