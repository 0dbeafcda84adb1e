package schemas

import (
	"context"

	"google.golang.org/protobuf/reflect/protoreflect"

	"freshet/internal/base/errs"
	"freshet/internal/registry/avro"
)

// Payloads is what a reader needs to decode payloads that were written with a schema.
type Payloads struct {
	Type Type
	Avro *avro.Schema                // for Avro
	File protoreflect.FileDescriptor // for Protobuf
}

// Payloads returns how to decode payloads with a schema id. It returns an error of kind NotFound for
// an unknown id, and one of kind Invalid for a schema that was imported and cannot be parsed.
func (r *Registry) Payloads(ctx context.Context, id int32) (Payloads, error) {
	s, err := r.SchemaByID(ctx, id)
	if err != nil || s.Type == JSON {
		return Payloads{Type: JSON}, err
	}
	work := r.newJob(ctx)
	parsed, err := r.stored(work, r.machine.View(), s)
	if err != nil {
		return Payloads{}, asInvalidSchema(err)
	}
	out := Payloads{Type: s.Type}
	switch schema := parsed.(type) {
	case avroSchema:
		out.Avro = schema.Schema
		return out, nil
	case protobufSchema:
		err := work.at(parseLane(s.Type, s.Text(), len(s.References), len(s.body)), func() (err error) {
			out.File, err = schema.schema.Descriptor()
			return err
		})
		return out, err
	}
	return out, errs.Newf(errs.Invalid, "schema %d was imported without validation and cannot be used to "+
		"decode payloads", id)
}
