package registryapi

import (
	"encoding/json"
	"reflect"
	"testing"
)

// plainBodies are bodies and whether plainRequest decodes them.
var plainBodies = map[string]bool{
	`{"schema":"\"string\""}`:                              true,
	` { "schema" : "a\\b\/c\b\f\n\r\t" } `:                 true,
	`{"schemaType":"JSON","schema":"{\"a\":\"é <&> 你\"}"}`: true,
	`{"schema":"","schemaType":"PROTOBUF"}`:                true,
	`{"schemaType":"AVRO"}`:                                true,
	"{\"schema\":\"a\nb\"}":                                false,
	"{\"schema\":\"a\n\"}":                                 false,
	"{\"schema\":\"\xff\"}":                                false,
	`{"schema":"\u0041"}`:                                  false,
	`{"schema":"\x"}`:                                      false,
	`{"schema":"a`:                                         false,
	`{"schema":"a\`:                                        false,
	`{"schema":"a"`:                                        false,
	`{"schema":"a",}`:                                      false,
	`{"schema":"a"} x`:                                     false,
	`{"schema":"a"}{}`:                                     false,
	`{"schema":"a","schema":"b"}`:                          false,
	`{"Schema":"a"}`:                                       false,
	`{"schema":"a","id":1}`:                                false,
	`{"schema":"a","references":[]}`:                       false,
	`{"schema":null}`:                                      false,
	`{}`:                                                   false,
	`[]`:                                                   false,
	``:                                                     false,
}

func TestPlainRequest(t *testing.T) {
	t.Parallel()
	for body, want := range plainBodies {
		if _, ok := plainRequest([]byte(body)); ok != want {
			t.Errorf("%s: plainRequest returned %t, want %t", body, ok, want)
		}
		samePlain(t, body)
	}
}

// FuzzPlainRequest compares plainRequest with encoding/json.
func FuzzPlainRequest(f *testing.F) {
	for body := range plainBodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) { samePlain(t, body) })
}

func samePlain(t *testing.T, body string) {
	t.Helper()
	got, ok := plainRequest([]byte(body))
	if !ok {
		return
	}
	var want schemaRequest
	if err := json.Unmarshal([]byte(body), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: got %+v, want %+v (%v)", body, got, want, err)
	}
}
