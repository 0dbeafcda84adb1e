package schemas

import "freshet/internal/schemas/protobuf"

type protobufLanguage struct{}

type protobufForm struct{ *protobuf.Schema }

func (protobufLanguage) parse(text string, deps []dependency, imported bool) (form, error) {
	refs := make([]protobuf.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.form.(protobufForm)
		if !ok {
			return nil, errMixed
		}
		refs[i] = protobuf.Reference{Name: dep.Name, Subject: dep.Subject, Version: int(dep.Version), Schema: f.Schema}
	}
	parse := protobuf.Parse
	if imported {
		parse = protobuf.ParseUnchecked
	}
	parsed, err := parse(text, refs)
	if err != nil {
		return nil, err
	}
	return protobufForm{parsed}, nil
}

func (f protobufForm) canonical() string  { return f.Canonical() }
func (f protobufForm) normalized() string { return f.Normalized() }

func (f protobufForm) problems(reader form, names roles) ([]string, error) {
	r, ok := reader.(protobufForm)
	if !ok {
		return nil, errMixed
	}
	found, err := protobuf.Compare(f.Schema, r.Schema)
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

func (f protobufForm) changes(old form) ([]Change, error) {
	o, ok := old.(protobufForm)
	if !ok {
		return nil, errMixed
	}
	found, err := protobuf.Compare(o.Schema, f.Schema)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(found))
	for i, d := range found {
		changes[i] = Change{Type: d.Type, Path: d.Path, Text: d.String(), Compatible: d.Compatible}
	}
	return changes, nil
}
