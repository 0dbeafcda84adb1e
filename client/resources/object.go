package resources

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a resource as decoded JSON. Numbers are json.Number, so that decoding and encoding
// do not change it.
type Object map[string]any

// ParseObject decodes an object from JSON.
func ParseObject(text []byte) (Object, error) {
	var o Object
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	return o, nil
}

// Into decodes the object into a value with JSON tags.
func (o Object) Into(value any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// Text returns the string field at a path, or "".
func (o Object) Text(path ...string) string {
	text, _ := o.Field(path...).(string)
	return text
}

// Field returns the field at a path, or nil.
func (o Object) Field(path ...string) any {
	var value any = map[string]any(o)
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

// Kind returns the field kind.
func (o Object) Kind() string { return o.Text("kind") }

// APIVersion returns the field apiVersion: API group and version.
func (o Object) APIVersion() string { return o.Text("apiVersion") }

// Name returns metadata.name.
func (o Object) Name() string { return o.Text("metadata", "name") }

// Organization returns metadata.namespace.
func (o Object) Organization() string { return o.Text("metadata", "namespace") }

// ResourceVersion returns metadata.resourceVersion.
func (o Object) ResourceVersion() string { return o.Text("metadata", "resourceVersion") }

// Condition is one of status.conditions.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
	// ObservedGeneration is the metadata.generation that the condition describes, or 0 if the server does not say.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// Conditions returns status.conditions.
func (o Object) Conditions() []Condition {
	var holder struct {
		Status struct {
			Conditions []Condition `json:"conditions"`
		} `json:"status"`
	}
	if o.Into(&holder) != nil {
		return nil
	}
	return holder.Status.Conditions
}

// Condition returns the condition of a type, without regard to case. Its Status is "" if the
// object does not have it.
func (o Object) Condition(name string) Condition {
	for _, c := range o.Conditions() {
		if strings.EqualFold(c.Type, name) {
			return c
		}
	}
	return Condition{Type: name}
}
