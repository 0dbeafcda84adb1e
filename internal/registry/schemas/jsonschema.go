package schemas

import "freshet/internal/registry/jsonschema"

type jsonLanguage struct{}

type jsonSchema = comparableSchema[*jsonschema.Schema, jsonschema.Difference]

func (jsonLanguage) parse(text string, deps []dependency, imported bool, spend spendFunc) (parsedSchema, error) {
	refs := make([]jsonschema.Reference, len(deps))
	for i, dep := range deps {
		f, ok := dep.parsed.(jsonSchema)
		if !ok {
			return nil, errMixed
		}
		refs[i] = jsonschema.Reference{Name: dep.Name, Schema: f.schema}
	}
	parsed, err := jsonschema.Parse(text, refs, spend)
	switch {
	case err != nil && imported && !isTransient(err):
		return parseRaw(text, err)
	case err != nil:
		return nil, err
	}
	return jsonSchema{parsed, jsonschema.Compare}, nil
}
