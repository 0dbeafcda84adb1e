package schemas

import (
	"freshet/internal/base/errs"
	"freshet/internal/registry/avro"
)

type avroLanguage struct{}

type avroSchema struct{ *avro.Schema }

func (avroLanguage) parse(text string, deps []dependency, imported bool, _ spendFunc) (parsedSchema, error) {
	refs := make([]avro.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.parsed.(avroSchema)
		if !ok {
			return nil, errMixed
		}
		refs[i] = avro.Reference{Name: dep.Name, Schema: f.Schema}
	}
	parsed, err := avro.Parse(text, refs)
	switch {
	case err != nil && imported:
		return parseRaw(text, err)
	case err != nil:
		return nil, err
	}
	return avroSchema{parsed}, nil
}

func (f avroSchema) canonical() string  { return f.Canonical() }
func (f avroSchema) normalized() string { return f.Normalized() }

// resolved returns the normalized text of the schema with every reference
// replaced by its definition.
func (f avroSchema) resolved() string {
	whole, err := avro.Parse(f.Resolved(), nil)
	if err != nil {
		return f.Resolved()
	}
	return whole.Normalized()
}

func (f avroSchema) problems(reader parsedSchema, names roles, spend spendFunc) ([]string, error) {
	r, ok := reader.(avroSchema)
	if !ok {
		return nil, errMixed
	}
	found, err := avro.Check(r.Schema, f.Schema, spend)
	if err != nil {
		return nil, err
	}
	messages := make([]string, len(found))
	for i, problem := range found {
		if problem.Type == avro.LimitExceeded {
			return nil, errs.New(errs.Invalid, problem.Describe(names.reader, names.writer))
		}
		messages[i] = problem.Describe(names.reader, names.writer)
	}
	return messages, nil
}

func (f avroSchema) changes(old parsedSchema, spend spendFunc) ([]Change, error) {
	o, ok := old.(avroSchema)
	if !ok {
		return nil, errMixed
	}
	found, err := avro.Changes(o.Schema, f.Schema, spend)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(found))
	for i, c := range found {
		changes[i] = Change{Type: c.Type, Path: c.Path, Text: c.Text, Compatible: c.Compatible}
	}
	return changes, nil
}
