package schemas

// comparableSchema is a parsed schema of a language whose Compare lists every
// difference between an old and a new schema: JSON Schema and Protobuf.
type comparableSchema[S printer, D difference] struct {
	schema  S
	compare func(old, next S, spend func(steps int) error) ([]D, error)
}

// printer is a schema that can print itself.
type printer interface {
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

// differenceFields has the fields of a difference: Go does not allow access to the fields of
// a type parameter.
type differenceFields struct {
	Type, Path string
	Compatible bool
}

func (f comparableSchema[S, D]) canonical() string  { return f.schema.Canonical() }
func (f comparableSchema[S, D]) normalized() string { return f.schema.Normalized() }

func (f comparableSchema[S, D]) problems(reader parsedSchema, names roles, spend spendFunc) ([]string, error) {
	r, ok := reader.(comparableSchema[S, D])
	if !ok {
		return nil, errMixed
	}
	found, err := f.compare(f.schema, r.schema, spend)
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, d := range found {
		if !differenceFields(d).Compatible {
			messages = append(messages, d.Describe(names.reader, names.writer))
		}
	}
	return messages, nil
}

func (f comparableSchema[S, D]) changes(old parsedSchema, spend spendFunc) ([]Change, error) {
	o, ok := old.(comparableSchema[S, D])
	if !ok {
		return nil, errMixed
	}
	found, err := f.compare(o.schema, f.schema, spend)
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(found))
	for i, d := range found {
		at := differenceFields(d)
		changes[i] = Change{Type: at.Type, Path: at.Path, Text: d.String(), Compatible: at.Compatible}
	}
	return changes, nil
}
