package schemas

import "freshet/internal/registry/protobuf"

type protobufLanguage struct{}

type protobufSchema = comparableSchema[*protobuf.Schema, protobuf.Difference]

func (protobufLanguage) parse(text string, deps []dependency, imported bool, _ spendFunc) (parsedSchema, error) {
	refs := make([]protobuf.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.parsed.(protobufSchema)
		if !ok {
			return nil, errMixed
		}
		refs[i] = protobuf.Reference{Name: dep.Name, Subject: dep.Subject, Version: int(dep.Version), Schema: f.schema}
	}
	parse := protobuf.Parse
	if imported {
		parse = protobuf.ParseUnchecked
	}
	parsed, err := parse(text, refs)
	if err != nil {
		return nil, err
	}
	return protobufSchema{parsed, protobuf.Compare}, nil
}
