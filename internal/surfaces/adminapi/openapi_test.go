package adminapi_test

import (
	"testing"

	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// TestDocumentHasEveryRoute checks that the OpenAPI document has the same routes and
// permissions as the code.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	described := brokertest.Operations(t, "/admin/v2/", "/rest-stream/")
	for _, route := range adminapi.Routes() {
		key := route.Method + " " + route.Pattern
		want := brokertest.Operation{Permission: route.Permissions, Extension: route.Extension}
		if got, ok := described[key]; !ok || got != want {
			t.Errorf("OpenAPI document of %s: got %+v, %v, want %+v", key, got, ok, want)
		}
		delete(described, key)
	}
	for key := range described {
		t.Errorf("%s is in the OpenAPI document but has no route", key)
	}
}
