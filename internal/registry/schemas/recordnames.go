package schemas

import (
	"context"
	"encoding/json"
	"strings"

	"freshet/internal/registry/protobuf"
)

// RecordNames returns the names that serializers use for the records of a schema: the
// full name of an Avro record, the title of a JSON schema, or the names of all messages
// of a Protobuf schema. A schema without such a name has none.
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
	var root struct{ Name, Namespace, Title string }
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		return nil // a primitive type or a union has no name
	}
	name := root.Title
	if t == Avro {
		if name = root.Name; root.Namespace != "" && name != "" && !strings.Contains(name, ".") {
			name = root.Namespace + "." + name
		}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}
