package schemas

// comparedForm is a parsed schema of a language whose Compare lists every
// difference between an old and a new schema: JSON Schema and Protobuf.
type comparedForm[S printed, D difference] struct {
	schema  S
	compare func(old, next S, spend func(steps int) error) ([]D, error)
}

// printed is a schema that knows its texts.
type printed interface {
	Canonical() string
	Normalized() string
}

// difference is what Compare lists.
type difference interface {
	~struct {
		Type, Path string
		Compatible bool
	}
	// Describe says it in the words of clients, given those for the schemas;
	// String where the new schema reads what the old one wrote.
	Describe(newName, oldName string) string
	String() string
}

// fields are those of a difference; a type parameter does not show them.
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
