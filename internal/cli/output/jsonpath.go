package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// jsonPath is the prefix of the format that prints parts of a value, as kubectl's.
const jsonPath = "jsonpath="

// parseJSONPath parses a format jsonpath=TEMPLATE. The braces of a template that is one path can
// be omitted.
func parseJSONPath(format string) (*jsonpath.JSONPath, error) {
	template := strings.TrimPrefix(format, jsonPath)
	if !strings.Contains(template, "{") {
		template = "{" + template + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("template %q is not valid: %w", template, err)
	}
	return path, nil
}

func checkJSONPath(format string) error {
	_, err := parseJSONPath(format)
	return err
}

// printJSONPath prints what a template selects in the JSON form of a value, and a line break.
func printJSONPath(w io.Writer, format string, value any) error {
	path, err := parseJSONPath(format)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := path.Execute(&b, decoded); err != nil {
		return fmt.Errorf("selecting the output: %w", err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	_, err = w.Write(b.Bytes())
	return err
}
