package messageapi_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
)

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := brokertest.Document(t).Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	r := w.as("").Call("GET", "/admin/rest/openapi.yaml", "").WantStatus(200).WantHeaders("Content-Type",
		"application/yaml")
	if _, err := openapi3.NewLoader().LoadFromData([]byte(r.Body)); err != nil {
		t.Error(err)
	}
}

// TestDocumentHasEveryRoute checks that the OpenAPI document has the same routes and
// permissions as the code.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	described := brokertest.Operations(t, "/admin/rest/")
	for _, route := range messageapi.Routes() {
		key := route.Method + " " + route.Pattern
		want := brokertest.Operation{Permission: route.Permission, Extension: route.Extension}
		if got, ok := described[key]; !ok || got != want {
			t.Errorf("OpenAPI document of %s: got %+v, %v, want %+v", key, got, ok, want)
		}
		delete(described, key)
	}
	for key := range described {
		t.Errorf("%s is in the OpenAPI document but has no route", key)
	}
}
