package registryapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"freshet/internal/registry/schemas"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/registryapi"
)

const (
	formatBase = `syntax = "proto3";import "google/protobuf/descriptor.proto";` +
		`extend google.protobuf.FieldOptions { string tag = 50000; }message Base { int32 n = 1; }`
	formatOuter = `syntax = "proto3";package p;import "base.proto";` +
		`message Outer { Base b = 1 [(tag) = "x", deprecated = true]; }`
	formatInner = `{"type":"record","name":"Inner","fields":[{"name":"a","type":"int"}]}`
	formatAvro  = `{"type":"record","name":"User","fields":[{"name":"i","type":"Inner"}]}`
)

// formatServer serves a registry with a Protobuf and an Avro schema, each with a
// reference.
func formatServer(t *testing.T, honour bool) *httptest.Server {
	t.Helper()
	h := fixture{registry: newRegistry(t, schemas.Options{}), honourFormat: honour}
	s := httptest.NewServer(
		registryapi.New(registryapi.Options{Resolver: h, Options: pipeline.Options{Authenticator: h, Authorizer: h}}))
	t.Cleanup(s.Close)
	for _, r := range []struct{ subject, kind, text, name, target string }{
		{"base", "PROTOBUF", formatBase, "", ""},
		{"outer", "PROTOBUF", formatOuter, "base.proto", "base"},
		{"inner", "AVRO", formatInner, "", ""},
		{"user", "AVRO", formatAvro, "Inner", "inner"},
	} {
		body := map[string]any{"schema": r.text, "schemaType": r.kind}
		if r.target != "" {
			body["references"] = []any{map[string]any{"name": r.name, "subject": r.target, "version": 1}}
		}
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if res, text := do(t, http.MethodPost, s.URL+"/subjects/"+r.subject+"/versions",
			strings.NewReader(string(data))); res.StatusCode != 200 {
			t.Fatal(res.Status, text)
		}
	}
	return s
}

// schemaAt requests a schema and returns its text and the ETag of the response.
func schemaAt(t *testing.T, url string) (text, tag string) {
	t.Helper()
	res, body := do(t, http.MethodGet, url, nil)
	var reply struct {
		Schema     string
		References []schemas.Reference
	}
	if err := json.Unmarshal([]byte(body), &reply); err != nil || res.StatusCode != 200 || len(reply.References) != 1 {
		t.Fatalf("%s: got %s %s with %d references: %v", url, res.Status, body, len(reply.References), err)
	}
	return reply.Schema, res.Header.Get("ETag")
}

func TestFormatIsIgnoredUnlessTheClusterHonoursIt(t *testing.T) {
	t.Parallel()
	s := formatServer(t, false)
	for _, path := range []string{
		"/schemas/ids/2", "/subjects/outer/versions/1", "/schemas/ids/4",
		"/subjects/user/versions/latest",
	} {
		want, _ := schemaAt(t, s.URL+path)
		for _, format := range []string{"serialized", "resolved", "ignore_extensions"} {
			if got, _ := schemaAt(t, s.URL+path+"?format="+format); got != want {
				t.Errorf("%s as %s: got %s, want %s", path, format, got, want)
			}
		}
	}
}

func TestFormatSerialized(t *testing.T) {
	t.Parallel()
	s := formatServer(t, true)
	_, plain := schemaAt(t, s.URL+"/schemas/ids/2")
	for _, path := range []string{"/schemas/ids/2", "/subjects/outer/versions/1"} {
		text, tag := schemaAt(t, s.URL+path+"?format=serialized")
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: got %q, want base64: %v", path, text, err)
		}
		var fd descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(data, &fd); err != nil {
			t.Fatal(err)
		}
		if got := fd.GetPackage() + " " + strings.Join(fd.GetDependency(), ",") + " " +
			fd.GetMessageType()[0].GetName() + " " +
			fd.GetMessageType()[0].GetField()[0].GetTypeName(); got != "p base.proto Outer .Base" {
			t.Errorf("%s: got %q, want %q", path, got, "p base.proto Outer .Base")
		}
		if tag == plain && tag != "" {
			t.Errorf("%s: got ETag %s, want another one than that of the plain text", path, tag)
		}
	}
	if _, text := do(t, http.MethodGet, s.URL+"/subjects/outer/versions/1/schema?format=serialized",
		nil); strings.Contains(text, "syntax") {
		t.Errorf("got text %s, want base64", text)
	}
}

func TestFormatOfTheOtherKinds(t *testing.T) {
	t.Parallel()
	s := formatServer(t, true)
	for _, c := range []struct{ path, want string }{
		{"/schemas/ids/2?format=ignore_extensions", "syntax = \"proto3\";\npackage p;\n\nimport " +
			"\"base.proto\";\n\nmessage Outer {\n  Base b = 1 [deprecated = true];\n}\n"},
		{"/schemas/ids/4?format=resolved", `{"type":"record","name":"User","fields":[{"name":"i","type":` +
			formatInner + `}]}`},
		{"/subjects/user/versions/1?format=resolved", `{"type":"record","name":"User","fields":[{"name":"i","type":` +
			formatInner + `}]}`},
		{"/schemas/ids/4?format=serialized", formatAvro},
		{"/schemas/ids/4?format=nonsense", formatAvro},
	} {
		if got, _ := schemaAt(t, s.URL+c.path); got != c.want {
			t.Errorf("%s: got %s, want %s", c.path, got, c.want)
		}
	}
}
