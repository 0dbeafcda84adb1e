package schemas

import "context"

// Format is a format of the text of a schema.
type Format uint8

// The formats. A format that the language of a schema does not have means Stored.
const (
	Stored           Format = iota
	Resolved                // Avro: references replaced by their definitions
	Serialized              // Protobuf: base64 of a FileDescriptorProto
	IgnoreExtensions        // Protobuf: no extend blocks, no custom options
)

// ParseFormat returns the format with a name. An unknown name means Stored.
func ParseFormat(name string) Format {
	switch name {
	case "resolved":
		return Resolved
	case "serialized":
		return Serialized
	case "ignore_extensions":
		return IgnoreExtensions
	}
	return Stored
}

// Formatted returns the schema with its text in another format.
func (r *Registry) Formatted(ctx context.Context, s *Schema, f Format) (*Schema, error) {
	if f == Stored {
		return s, nil
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	work := r.newJob(ctx)
	parsed, err := r.stored(work, st, s)
	if err != nil {
		return nil, asInvalidSchema(err)
	}
	var text string
	var ok bool
	err = work.at(parseLane(s.Type, s.Text(), len(s.References), len(s.body)), func() (err error) {
		text, ok, err = f.print(parsed)
		return err
	})
	if err != nil {
		return nil, asInvalidSchema(err)
	}
	if !ok {
		return s, nil
	}
	return newSchema(s.ID, s.Type, text, s.References), nil
}

// print prints a parsed schema; ok is false when its language does not have the
// format.
func (f Format) print(parsed parsedSchema) (text string, ok bool, err error) {
	switch schema := parsed.(type) {
	case avroSchema:
		if f == Resolved {
			return schema.Resolved(), true, nil
		}
	case protobufSchema:
		switch f {
		case Serialized:
			text, err = schema.schema.Serialized()
			return text, true, err
		case IgnoreExtensions:
			return schema.schema.WithoutExtensions(), true, nil
		}
	}
	return "", false, nil
}
