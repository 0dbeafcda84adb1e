package resourcecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newExplain(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD]...",
		Short: "Describe the fields of a kind of resource",
		Long: `Describe a kind of resource, or one of its fields, from the server's OpenAPI document: its
type, what it means, and the fields in it.`,
		Example: `  # a kind
  freshet explain mc

  # its spec
  freshet explain messagingclusters.spec

  # a field
  freshet explain ak.spec.expirationTime`,
		Args:              command.OneArg("a kind, or a kind and a field: mc.spec.broker"),
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := connect(cmd.Context(), env)
			if err != nil {
				return err
			}
			word, path, _ := strings.Cut(args[0], ".")
			kinds, err := s.findKinds(word)
			if err != nil {
				return err
			}
			conn, err := env.Client()
			if err != nil {
				return err
			}
			defer conn.Close()
			e, err := explain(cmd.Context(), conn, kinds[0], path)
			if err != nil {
				return err
			}
			if format.IsData() {
				return output.Value(env.Out, format, e)
			}
			return e.print(env.Out)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// explanation describes a kind or a field.
type explanation struct {
	Name        string        `json:"name"`
	Type        string        `json:"type"`
	Required    bool          `json:"required,omitempty"`
	Description string        `json:"description,omitempty"`
	Values      []any         `json:"values,omitempty"` // if it has only these
	Fields      []explanation `json:"fields,omitempty"`
}

// schema is the part of an OpenAPI schema that explain shows.
type schema struct {
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Format      string            `json:"format"`
	Enum        []any             `json:"enum"`
	Ref         string            `json:"$ref"`
	AllOf       []schema          `json:"allOf"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Required    []string          `json:"required"`
	// Kinds are the kinds that the schema describes: group, version and kind of each.
	Kinds []map[string]string `json:"x-kubernetes-group-version-kind"`
}

type openAPI struct {
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

// explain describes a kind or the field at a path of names.
func explain(ctx context.Context, conn *client.Client, kind resources.Kind, path string) (*explanation, error) {
	root := "apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		root = "api/" + kind.Version
	}
	response, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/openapi/v3/" + root})
	if err != nil {
		return nil, err
	}
	var document openAPI
	if err := response.JSON(&document); err != nil {
		return nil, err
	}
	found, ok := document.kind(kind)
	if !ok {
		return nil, errs.Newf(errs.NotFound, "server does not describe kind %s", kind.Kind)
	}
	field := kind.Kind
	for name := range strings.SplitSeq(path, ".") {
		if name == "" {
			continue
		}
		next, ok := document.resolve(found).Properties[name]
		if !ok {
			return nil, hint.Add(errs.Newf(errs.NotFound, "%s has no field %s", field, name), "Its fields are: %s.",
				strings.Join(slices.Sorted(maps.Keys(document.resolve(found).Properties)), ", "))
		}
		found, field = next, field+"."+name
	}
	return document.explain(field, found), nil
}

func (d *openAPI) kind(kind resources.Kind) (schema, bool) {
	for _, candidate := range d.Components.Schemas {
		for _, k := range candidate.Kinds {
			if k["group"] == kind.Group && k["version"] == kind.Version && k["kind"] == kind.Kind {
				return candidate, true
			}
		}
	}
	return schema{}, false
}

// resolve returns the schema that a reference or the items of a list refer to, with the
// description of the reference.
func (d *openAPI) resolve(s schema) schema {
	ref := s.Ref
	if len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref
	}
	if s.Items != nil {
		items := d.resolve(*s.Items)
		items.Description = s.Description
		return items
	}
	target, ok := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	if !ok {
		return s
	}
	if s.Description != "" {
		target.Description = s.Description
	}
	return target
}

// typeText names the type of a schema: string, integer, []string, Object.
func (d *openAPI) typeText(s schema) string {
	switch target := d.resolve(s); {
	case s.Items != nil:
		return "[]" + d.typeText(*s.Items)
	case len(target.Properties) > 0:
		return "Object"
	case target.Type == "object" && len(target.Additional) > 0:
		return "map[string]" + d.valueType(target.Additional)
	case target.Format != "" && target.Format != "int64" && target.Format != "int32":
		return target.Type + " (" + target.Format + ")"
	case target.Type == "":
		return "any"
	default:
		return target.Type
	}
}

func (d *openAPI) valueType(raw json.RawMessage) string {
	var value schema
	if json.Unmarshal(raw, &value) != nil {
		return "any"
	}
	return d.typeText(value)
}

// explain describes a schema and its fields.
func (d *openAPI) explain(name string, found schema) *explanation {
	target := d.resolve(found)
	e := &explanation{
		Name: name, Type: d.typeText(found), Description: output.Clean(target.Description), Values: target.Enum,
	}
	for _, name := range slices.Sorted(maps.Keys(target.Properties)) {
		property := target.Properties[name]
		e.Fields = append(e.Fields, explanation{
			Name: name, Type: d.typeText(property), Required: slices.Contains(target.Required, name),
			Description: output.Clean(d.resolve(property).Description), Values: d.resolve(property).Enum,
		})
	}
	return e
}

func (e *explanation) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s <%s>\n", e.Name, e.Type)
	if e.Description != "" {
		fmt.Fprintf(&b, "  %s\n", e.Description)
	}
	if len(e.Values) > 0 {
		fmt.Fprintf(&b, "  One of: %s\n", strings.Trim(fmt.Sprint(e.Values...), "[]"))
	}
	if len(e.Fields) > 0 {
		b.WriteString("\nFields:\n")
	}
	for _, f := range e.Fields {
		required := ""
		if f.Required {
			required = ", required"
		}
		fmt.Fprintf(&b, "  %s <%s%s>\n", f.Name, f.Type, required)
		if text, _, _ := strings.Cut(f.Description, "\n"); text != "" {
			fmt.Fprintf(&b, "    %s\n", text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
