package schemas

import (
	"freshet/internal/base/errs"
	"freshet/internal/registry/avro"
)

type avroLanguage struct{}

type avroForm struct{ *avro.Schema }

func (avroLanguage) parse(text string, deps []dependency, imported bool, _ spending) (form, error) {
	refs := make([]avro.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.form.(avroForm)
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
	return avroForm{parsed}, nil
}

func (f avroForm) canonical() string  { return f.Canonical() }
func (f avroForm) normalized() string { return f.Normalized() }

// resolved returns the normalized text of the schema with every reference
// replaced by its definition.
func (f avroForm) resolved() string {
	whole, err := avro.Parse(f.Resolved(), nil)
	if err != nil {
		return f.Resolved()
	}
	return whole.Normalized()
}

func (f avroForm) problems(reader form, names roles, spend spending) ([]string, error) {
	r, ok := reader.(avroForm)
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

func (f avroForm) changes(old form, spend spending) ([]Change, error) {
	o, ok := old.(avroForm)
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
