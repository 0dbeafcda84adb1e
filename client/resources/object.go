package resources

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a resource as JSON has it. Numbers are json.Number, so that reading
// and writing one changes nothing.
type Object map[string]any

// ParseObject reads an object from JSON.
func ParseObject(text []byte) (Object, error) {
	var o Object
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("an object cannot be read: %w", err)
	}
	return o, nil
}

// Into copies the object into a value by its JSON tags.
func (o Object) Into(value any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// Text is a field that holds a string, named by its path; "" when there is none.
func (o Object) Text(path ...string) string {
	text, _ := o.Field(path...).(string)
	return text
}

// Field is a field, named by its path; nil when there is none.
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

// Kind is the kind that the object says it is.
func (o Object) Kind() string { return o.Text("kind") }

// APIVersion is its group and version.
func (o Object) APIVersion() string { return o.Text("apiVersion") }

// Name is metadata.name.
func (o Object) Name() string { return o.Text("metadata", "name") }

// Organization is metadata.namespace.
func (o Object) Organization() string { return o.Text("metadata", "namespace") }

// ResourceVersion is metadata.resourceVersion.
func (o Object) ResourceVersion() string { return o.Text("metadata", "resourceVersion") }

// Condition is one of status.conditions.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// Conditions are the object's, in its order.
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

// Condition is the one of a type, in any case; its Status is "" when there is none.
func (o Object) Condition(name string) Condition {
	for _, c := range o.Conditions() {
		if strings.EqualFold(c.Type, name) {
			return c
		}
	}
	return Condition{Type: name}
}

func lower(text string) string { return strings.ToLower(text) }
