package dataplane

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/broker/filter"
	"freshet/internal/registry/schemas"
)

// schemaIDs gives the broker access to the ids in the cluster's registry
// (docs/spec/messages.md#schema-ids).
type schemaIDs struct{ registry *schemas.Registry }

// RecordNames implements messaging.SchemaRegistry.
func (s schemaIDs) RecordNames(ctx context.Context, id int32) ([]string, error) {
	list, err := s.registry.RecordNames(ctx, id)
	if errs.KindOf(err) == errs.NotFound {
		return nil, nil // no subject has the id
	}
	return list, err
}

// PayloadSchema implements messaging.SchemaRegistry.
func (s schemaIDs) PayloadSchema(ctx context.Context, id int32) (*filter.Schema, error) {
	found, err := s.registry.Payloads(ctx, id)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return nil, nil // no subject has the id
	case err != nil:
		return nil, err
	case found.Avro != nil:
		return filter.Avro(found.Avro), nil
	case found.File != nil:
		return filter.ProtobufFile(found.File), nil
	}
	return filter.JSON(), nil
}

// SubjectHasID implements messaging.SchemaRegistry.
func (s schemaIDs) SubjectHasID(ctx context.Context, subject string, id int32) (bool, error) {
	found := false
	s.registry.VisitSubjectsOf(id, func(holder string) bool {
		found = holder == subject
		return !found
	})
	if found {
		return true, nil
	}
	// A miss may be a registration that this process has not applied yet.
	usages, err := s.registry.Usages(ctx, id, true)
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			return false, nil
		}
		return false, err
	}
	for _, usage := range usages {
		if usage.Subject == subject {
			return true, nil
		}
	}
	return false, nil
}
