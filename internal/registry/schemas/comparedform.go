package schemas

// comparedForm is a parsed schema of a language whose Compare lists every
// difference between an old and a new schema: JSON Schema and Protobuf.
type comparedForm[S printed, D difference] struct {
	schema  S
	compare func(old, next S, spend func(steps int) error) ([]D, error)
}

// printed is a schema that can print itself.
type printed interface {
	Canonical() string
	Normalized() string
}

// difference is one entry of the result of Compare.
type difference interface {
	~struct {
		Type, Path string
		Compatible bool
	}
	// Describe returns the difference in the format of Confluent Schema Registry,
	// with names for the two schemas.
	Describe(newName, oldName string) string
	// String returns the difference for a new schema that reads data of the old one.
	String() string
}

// fields has the fields of a difference: Go does not allow access to the fields of
// a type parameter.
type fields struct {
	Type, Path string
	Compatible bool
}

func (f comparedForm[S, D]) canonical() string  { return f.schema.Canonical() }
func (f comparedForm[S, D]) normalized() string { return f.schema.Normalized() }

func (f comparedForm[S, D]) problems(reader form, names roles, spend spending) ([]string, error) {
	r, ok := reader.(comparedForm[S, D])
	if !ok {
		return nil, errMixed
	}
	found, err := f.compare(f.schema, r.schema, spend)
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, d := range found {
		if !fields(d).Compatible {
			messages = append(messages, d.Describe(names.reader, names.writer))
		}
	}
	return messages, nil
}

func (f comparedForm[S, D]) changes(old form, spend spending) ([]Change, error) {
	o, ok := old.(comparedForm[S, D])
	if !ok {
		return nil, errMixed
	}
	found, err := f.compare(o.schema, f.schema, spend)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(found))
	for i, d := range found {
		at := fields(d)
		changes[i] = Change{Type: at.Type, Path: at.Path, Text: d.String(), Compatible: at.Compatible}
	}
	return changes, nil
}
