package adminapi_test

import (
	"testing"

	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// TestDocumentHasEveryRoute holds the document and the routes together, and
// what it says of permissions.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	described := brokertest.Operations(t, "/admin/v2/", "/rest-stream/")
	for _, route := range adminapi.Routes() {
		key := route.Method + " " + route.Pattern
		want := brokertest.Operation{Permission: route.Permissions, Extension: route.Extension}
		if got, ok := described[key]; !ok || got != want {
			t.Errorf("%s is described as %+v, %v, want %+v", key, got, ok, want)
		}
		delete(described, key)
	}
	for key := range described {
		t.Errorf("%s is in the document and nowhere else", key)
	}
}
