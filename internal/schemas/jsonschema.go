package schemas

import "freshet/internal/schemas/jsonschema"

type jsonLanguage struct{}

type jsonForm struct{ *jsonschema.Schema }

func (jsonLanguage) parse(text string, deps []dependency, imported bool) (form, error) {
	refs := make([]jsonschema.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.form.(jsonForm)
		if !ok {
			return nil, errMixed
		}
		refs[i] = jsonschema.Reference{Name: dep.Name, Schema: f.Schema}
	}
	parsed, err := jsonschema.Parse(text, refs)
	switch {
	case err != nil && imported:
		return parseRaw(text, err)
	case err != nil:
		return nil, err
	}
	return jsonForm{parsed}, nil
}

func (f jsonForm) canonical() string  { return f.Canonical() }
func (f jsonForm) normalized() string { return f.Normalized() }

func (f jsonForm) problems(reader form, names roles) ([]string, error) {
	r, ok := reader.(jsonForm)
	if !ok {
		return nil, errMixed
	}
	found, err := jsonschema.Compare(f.Schema, r.Schema)
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, d := range found {
		if !d.Compatible {
			messages = append(messages, d.Describe(names.reader, names.writer))
		}
	}
	return messages, nil
}

func (f jsonForm) changes(old form) ([]Change, error) {
	o, ok := old.(jsonForm)
	if !ok {
		return nil, errMixed
	}
	found, err := jsonschema.Compare(o.Schema, f.Schema)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(found))
	for i, d := range found {
		changes[i] = Change{Type: d.Type, Path: d.Path, Text: d.String(), Compatible: d.Compatible}
	}
	return changes, nil
}
