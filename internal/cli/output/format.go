package output

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Format is an output format, the value of -o.
type Format string

// The common formats.
const (
	FormatTable Format = "table"
	FormatWide  Format = "wide"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
	FormatName  Format = "name"
	FormatText  Format = "text"
)

// IsData reports whether the format prints a value for programs with Value.
func (f Format) IsData() bool {
	return f == FormatJSON || f == FormatYAML || strings.HasPrefix(string(f), jsonPath)
}

// AddFlag adds the flag -o with the formats of a command. The first one is the default.
func AddFlag(f *pflag.FlagSet, format *Format, formats ...Format) {
	*format = formats[0]
	usage := words(formats)
	if slices.Contains(formats, FormatJSON) {
		usage += ", or jsonpath=TEMPLATE"
	}
	f.VarP(&formatValue{format: format, formats: formats}, "output", "o", usage)
}

func words(formats []Format) string {
	names := make([]string, len(formats))
	for i, k := range formats {
		names[i] = string(k)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// formatValue is the value of the flag -o. It rejects unknown formats.
type formatValue struct {
	format  *Format
	formats []Format
	former  func(text string) (taken bool, err error)
}

// AcceptFormer makes a command's flag -o accept values of a former meaning of the flag: former reports whether it has
// taken a value that is no format.
func AcceptFormer(f *pflag.FlagSet, former func(text string) (taken bool, err error)) {
	if v, ok := f.Lookup("output").Value.(*formatValue); ok {
		v.former = former
	}
}

func (v *formatValue) String() string { return string(*v.format) }
func (v *formatValue) Type() string   { return "format" }

func (v *formatValue) Set(text string) error {
	if strings.HasPrefix(text, jsonPath) && slices.Contains(v.formats, FormatJSON) {
		if err := checkJSONPath(text); err != nil {
			return err
		}
	} else if !slices.Contains(v.formats, Format(text)) {
		if v.former != nil {
			if taken, err := v.former(text); taken {
				return err
			}
		}
		return fmt.Errorf("use %s", words(v.formats))
	}
	*v.format = Format(text)
	return nil
}

// Formats lists the formats of a command's flag -o, for completion. It is nil for a command
// without the flag.
func Formats(f *pflag.FlagSet) []string {
	flag := f.Lookup("output")
	if flag == nil {
		return nil
	}
	v, ok := flag.Value.(*formatValue)
	if !ok {
		return nil
	}
	names := make([]string, len(v.formats))
	for i, k := range v.formats {
		names[i] = string(k)
	}
	return names
}

// JSON prints a value as indented JSON.
func JSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// YAML prints a value as YAML, with the names of its JSON tags.
func YAML(w io.Writer, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Line prints a value of a stream on one line, as JSON or the parts that a JSONPath template selects.
func Line(w io.Writer, format Format, value any) error {
	if strings.HasPrefix(string(format), jsonPath) {
		return printJSONPath(w, string(format), value)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// Document prints a YAML or JSON text in a format for programs.
func Document(w io.Writer, format Format, text []byte) error {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return err
	}
	return Value(w, format, value)
}

// Value prints a value as JSON or YAML, or the parts of it that a JSONPath template selects.
func Value(w io.Writer, format Format, value any) error {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.IsNil() {
		value = []any{} // an empty list, not null
	}
	if strings.HasPrefix(string(format), jsonPath) {
		return printJSONPath(w, string(format), value)
	}
	if format == FormatYAML {
		return YAML(w, value)
	}
	return JSON(w, value)
}
