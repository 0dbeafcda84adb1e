// Package chart renders the Helm chart in deploy/helm without the Helm library: for `freshet generate
// kubernetes`, which prints the same objects as plain manifests. It owns the functions that the
// templates of the chart may use (functions.go), and the check of values against the chart's schema.
//
// It does not install anything, and renders no other chart: it knows no dependencies, no hooks and no
// NOTES.txt. A test in test/charts compares its output with Helm's. docs/adr/0060-one-source-of-manifests.md
// gives the reasons.
package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"sigs.k8s.io/yaml"

	"freshet/deploy/helm"
	"freshet/internal/base/errs"
)

// root is the folder of the chart in helm.Files.
const root = "freshet"

// Release names what is installed.
type Release struct {
	Name      string
	Namespace string
	// Service is what manages the objects; Helm calls itself Helm here.
	Service string
}

// metadata has the fields of Chart.yaml that the templates use.
type metadata struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}

// data is the dot of the templates.
type data struct {
	Values  map[string]any
	Release Release
	Chart   metadata
	Files   files
}

// files gives templates the other files of the chart.
type files struct{}

// Get returns the content of a file, or "" if there is none, as in Helm.
func (files) Get(name string) string {
	text, _ := helm.Files.ReadFile(path.Join(root, name))
	return string(text)
}

// Render returns the objects of the chart as YAML documents. values change the chart's own values, and are
// rejected with the fields that are wrong if the schema of the chart does not allow them.
func Render(release Release, values map[string]any) (string, error) {
	var chart metadata
	if err := unmarshal("Chart.yaml", &chart); err != nil {
		return "", err
	}
	all := map[string]any{}
	if err := unmarshal("values.yaml", &all); err != nil {
		return "", err
	}
	all = coalesce(all, values)
	if err := validate(all); err != nil {
		return "", err
	}
	set := template.New(root).Option("missingkey=zero")
	set.Funcs(functions(set))
	names, err := parse(set)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range names {
		var text bytes.Buffer
		if err := set.ExecuteTemplate(&text, name, data{all, release, chart, files{}}); err != nil {
			return "", fmt.Errorf("rendering %s: %w", name, err)
		}
		if body := strings.Trim(text.String(), "\n"); body != "" {
			fmt.Fprintf(&out, "---\n# %s\n%s\n", name, strings.TrimPrefix(body, "---\n"))
		}
	}
	return out.String(), nil
}

// Image returns the image that the chart uses unless values name another one. A distributor sets its
// repository in values.yaml.
func Image() string {
	var chart metadata
	var values struct {
		Image struct{ Repository string }
	}
	if unmarshal("Chart.yaml", &chart) != nil || unmarshal("values.yaml", &values) != nil {
		return "" // a test renders both
	}
	return values.Image.Repository + ":" + chart.AppVersion
}

// parse reads all templates, and returns the names of those that make objects, in their order.
func parse(set *template.Template) (names []string, err error) {
	found, err := fs.Glob(helm.Files, root+"/templates/*")
	if err != nil {
		return nil, err
	}
	for _, file := range found {
		name := strings.TrimPrefix(file, root+"/")
		text, err := helm.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if path.Ext(name) == ".txt" {
			continue // the notes that Helm prints
		}
		if _, err := set.New(name).Parse(string(text)); err != nil {
			return nil, err
		}
		if path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	return names, nil
}

func unmarshal(name string, into any) error {
	text, err := helm.Files.ReadFile(path.Join(root, name))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s of the chart: %w", name, err)
	}
	return nil
}

// coalesce returns the chart's values with those of the caller: objects are merged, everything else is
// replaced, and null removes a key.
func coalesce(defaults, values map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range defaults {
		out[key] = value
	}
	for key, value := range values {
		inner, isMap := value.(map[string]any)
		before, wasMap := defaults[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap && wasMap:
			out[key] = coalesce(before, inner)
		default:
			out[key] = value
		}
	}
	return out
}

// validate checks values against values.schema.json.
func validate(values map[string]any) error {
	text := files{}.Get("values.schema.json")
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading the schema of the chart: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.schema.json", schema); err != nil {
		return fmt.Errorf("reading the schema of the chart: %w", err)
	}
	compiled, err := compiler.Compile("values.schema.json")
	if err != nil {
		return fmt.Errorf("reading the schema of the chart: %w", err)
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return errs.Newf(errs.Invalid, "values: %w", err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return errs.Newf(errs.Invalid, "values: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(instance); errors.As(err, &invalid) {
		return errs.Newf(errs.Invalid, "invalid values: %s; docs/reference/helm-values.md lists the values",
			strings.Join(problems(invalid), "; "))
	} else if err != nil {
		return errs.Newf(errs.Invalid, "values: %w", err)
	}
	return nil
}

// problems returns the fields that are wrong, each with the reason.
func problems(e *jsonschema.ValidationError) (list []string) {
	if len(e.Causes) == 0 {
		field := strings.Join(e.InstanceLocation, ".")
		if _, banned := e.ErrorKind.(*kind.FalseSchema); banned {
			return []string{field + " is a setting that the chart makes itself"}
		}
		return []string{strings.TrimPrefix(field+": ", ": ") +
			e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
	}
	for _, cause := range e.Causes {
		list = append(list, problems(cause)...)
	}
	return list
}
