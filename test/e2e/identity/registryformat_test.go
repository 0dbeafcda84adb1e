package identity_test

import (
	"strings"
	"testing"
)

// TestRegistryFormatSetting checks that the custom configuration of a
// cluster decides whether its registry evaluates the query parameter format
// (docs/spec/registry.md#d12).
func TestRegistryFormatSetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("formats")
	for name, custom := range map[string]map[string]any{"plain": {}, "honours": {"registry.format": "honour"}} {
		w.post("messagingclusters", object(name, map[string]any{
			"instanceName": "formats", "location": "local", "broker": map[string]any{},
			"config": map[string]any{"custom": custom},
		})).want(201)
		host := w.eventuallyReady("messagingclusters/" + name).text("spec.serviceEndpoints.0.dnsName")
		w.do(call{method: "POST", path: "/stream/subjects/p/versions", host: host, body: map[string]any{
			"schemaType": "PROTOBUF", "schema": `syntax = "proto3"; message M { int32 a = 1; }`,
		}}).want(200)
		got := w.do(call{path: "/stream/schemas/ids/1?format=serialized", host: host}).want(200).text("schema")
		if want := len(custom) == 0; strings.Contains(got, "syntax") != want {
			t.Errorf("%s: got %q, want the source text: %t", name, got, want)
		}
	}
}
