package schemas

import (
	"context"
	"encoding/json"
	"strings"

	"freshet/internal/registry/protobuf"
)

// RecordNames returns how serializers call what a schema describes: an Avro record's
// full name, the title of a JSON schema, every message of a Protobuf schema. Some have
// none.
func (r *Registry) RecordNames(ctx context.Context, id int32) ([]string, error) {
	s, err := r.SchemaByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if known := s.recordNames.Load(); known != nil {
		return *known, nil
	}
	list := namesIn(s.Type, s.Text())
	s.recordNames.Store(&list)
	return list, nil
}

func namesIn(t Type, text string) []string {
	if t == Protobuf {
		return protobuf.MessageNames(text)
	}
	var outside struct{ Name, Namespace, Title string }
	if err := json.Unmarshal([]byte(text), &outside); err != nil {
		return nil // a primitive type, or a union: it has no name
	}
	name := outside.Title
	if t == Avro {
		if name = outside.Name; outside.Namespace != "" && name != "" && !strings.Contains(name, ".") {
			name = outside.Namespace + "." + name
		}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}
