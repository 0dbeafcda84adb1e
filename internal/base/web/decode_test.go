package web_test

import (
	"encoding/json"
	"testing"
	"time"

	"freshet/internal/base/web"
)

func TestDecodeTextOfRealErrors(t *testing.T) {
	t.Parallel()
	type inner struct {
		Count  int64             `json:"count"`
		Small  int32             `json:"small"`
		Size   uint64            `json:"size"`
		Share  float64           `json:"share"`
		On     bool              `json:"on"`
		Names  []string          `json:"names"`
		Labels map[string]string `json:"labels"`
		At     time.Time         `json:"at"`
	}
	var body struct {
		Name string `json:"name"`
		Spec *inner `json:"spec"`
	}
	tests := map[string]struct{ body, want string }{
		"string":       {`{"name": 5}`, "name: expected a string, not a number"},
		"whole number": {`{"spec": {"count": "x"}}`, "spec.count: expected a whole number, not a string"},
		"fraction":     {`{"spec": {"count": 1.5}}`, "spec.count: expected a whole number, not 1.5"},
		"too large a number": {
			`{"spec": {"small": 99999999999}}`,
			"spec.small: expected a whole number up to 2147483647, not 99999999999",
		},
		"negative": {
			`{"spec": {"size": -1}}`,
			"spec.size: expected a whole number that is not negative, not -1",
		},
		"number":           {`{"spec": {"share": []}}`, "spec.share: expected a number, not an array"},
		"boolean":          {`{"spec": {"on": "yes"}}`, "spec.on: expected true or false, not a string"},
		"array":            {`{"spec": {"names": {}}}`, "spec.names: expected an array, not an object"},
		"array of objects": {`{"spec": {"names": [true]}}`, "spec.names: expected a string, not true or false"},
		"map":              {`{"spec": {"labels": 5}}`, "spec.labels: expected an object, not a number"},
		"object":           {`{"spec": "x"}`, "spec: expected an object, not a string"},
		"whole body":       {`[]`, "expected an object, not an array"},
		"time": {
			`{"spec": {"at": "tomorrow"}}`,
			`"tomorrow" is not a time of the form 2006-01-31T15:04:05Z (RFC 3339)`,
		},
		"impossible time": {
			`{"spec": {"at": "2026-02-31T00:00:00Z"}}`,
			`"2026-02-31T00:00:00Z" is not a time of the form 2006-01-31T15:04:05Z (RFC 3339)`,
		},
		"syntax": {`{`, "unexpected end of JSON input"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := body
			err := json.Unmarshal([]byte(tc.body), &into)
			if err == nil {
				t.Fatalf("decoding %s succeeded, want an error", tc.body)
			}
			if got := web.DecodeText(err.Error()); got != tc.want {
				t.Errorf("%s: got %q, want %q (from %q)", tc.body, got, tc.want, err)
			}
		})
	}
}

func TestDecodeTextOfLibraries(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"failed: errors:\n  .spec.email: expected string, got &value.valueUnstructured{Value:true}\n  .spec.name: " +
			"expected map, got &{[]}": "failed: errors:\n  .spec.email: expected a string, not true\n  .spec.name: " +
			"expected an object, not an array",
		`.a: expected numeric (int or float), got &value.valueUnstructured{Value:"x"}`: ".a: expected a " +
			`number, not "x"`,
		`.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":5}}`: ".a: expected a " +
			"string, not an object",
		"cannot convert int64 to string":                    "expected a string, not a whole number",
		"cannot restore struct from: slice":                 "expected an object, not an array",
		`strconv.ParseInt: parsing "x": invalid syntax`:     `"x" is not a whole number`,
		`strconv.ParseBool: parsing "x": invalid syntax`:    `"x" is not true or false`,
		`strconv.ParseInt: parsing "9": value out of range`: `"9" is out of range`,
		`json: unknown field "x"`:                           `unknown field "x"`,
		"quantities must match the regular expression '^([+-])'": "a quantity is a number with or without a unit, " +
			"such as 500m, 2 or 4Gi",
		`invalid: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type ` +
			`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } ` +
			`(5b5d)`: "invalid: expected an object, not an array (5b5d)",
		"there is nothing to translate: expected": "there is nothing to translate: expected",
	}
	for text, want := range tests {
		if got := web.DecodeText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
