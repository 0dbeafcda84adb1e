package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apply "freshet/api/generated/applyconfiguration/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

func withProtocols(protocols string) string {
	return `{"instanceName":"i","location":"local","config":{"protocols":` + protocols + `}}`
}

// TestNullDisablesAProtocol checks that null disables a protocol, for every way to write it.
func TestNullDisablesAProtocol(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	const both, off = `{"mqtt":{"a":1},"stream":{}}`, `{"mqtt":{"a":1},"stream":null}`
	n := 0
	fresh := func() string {
		n++
		name := fmt.Sprint("c", n)
		a.post(k.plural, k.with(withProtocols(both), name)).want(http.StatusCreated).has("spec.config.protocols",
			"map[mqtt:map[a:1] stream:map[]]")
		return name
	}
	item := func(name string) string { return k.plural + "/" + name }
	for way, write := range map[string]func() string{
		"create": func() string { a.post(k.plural, k.with(withProtocols(off), "new")); return "new" },
		"create YAML": func() string {
			a.post(k.plural, k.with(withProtocols(off), "yaml"), "Content-Type", yamlType)
			return "yaml"
		},
		"apply, creating": func() string {
			a.patch(item("applied")+"?fieldManager=me", applyPatch, k.apply("applied", withProtocols(off)))
			return "applied"
		},
		"put":  func() string { c := fresh(); a.put(item(c), k.with(withProtocols(off), c)); return c },
		"post": func() string { c := fresh(); a.post(item(c), k.with(withProtocols(off), c)); return c },
		"put YAML": func() string {
			c := fresh()
			a.put(item(c), k.with(withProtocols(off), c), "Content-Type", yamlType)
			return c
		},
		"merge": func() string {
			c := fresh()
			a.patch(item(c), mergePatch,
				`{"spec":`+withProtocols(off)+`}`)
			return c
		},
		"strategic": func() string {
			c := fresh()
			a.patch(item(c), strategic, `{"spec":{"config":{"protocols":{"stream":null}}}}`)
			return c
		},
		"json": func() string {
			c := fresh()
			a.patch(item(c), jsonPatch, `[{"op":"replace","path":"/spec/config/protocols/stream","value":null}]`)
			return c
		},
		"apply": func() string {
			c := fresh()
			a.patch(item(c)+"?fieldManager=me&force=true", applyPatch, k.apply(c, withProtocols(off)))
			return c
		},
		"apply after apply": func() string {
			a.patch(item("twice")+"?fieldManager=me", applyPatch,
				k.apply("twice", withProtocols(both))).want(http.StatusCreated)
			a.patch(item("twice")+"?fieldManager=me", applyPatch, "# YAML\n"+k.apply("twice", withProtocols(off)))
			return "twice"
		},
	} {
		a.get(item(write())).want(http.StatusOK).has("spec.config.protocols", "map[mqtt:map[a:1]]")
		if a.Failed() {
			t.Fatalf("%s: protocol set to null is still enabled", way)
		}
	}
	// A spec with null only has no protocols.
	a.post(k.plural, k.with(withProtocols(`{"stream":null}`), "none")).want(http.StatusCreated).has("spec.config",
		"map[]")
	// A disabled protocol stays disabled when the same manifest is applied again.
	for _, name := range []string{"twice", "applied"} {
		before := a.get(item(name)).version()
		a.patch(item(name)+"?fieldManager=me", applyPatch, k.apply(name, withProtocols(off))).want(http.StatusOK).has(
			"metadata.resourceVersion", before)
		// Another manager may disable it as well, and a third one may enable it without a conflict.
		a.patch(item(name)+"?fieldManager=other", applyPatch,
			k.apply(name, withProtocols(off))).want(http.StatusOK).has("spec.config.protocols", "map[mqtt:map[a:1]]")
		a.patch(item(name)+"?fieldManager=third", applyPatch,
			k.apply(name, withProtocols(both))).want(http.StatusOK).has("spec.config.protocols.stream", "map[]")
		a.patch(item(name)+"?fieldManager=me", applyPatch, k.apply(name, withProtocols(off))).want(http.StatusConflict)
	}
}

// TestProtocolSettingsAreKept checks that settings are unchanged in every format of a body, and by
// storage.
func TestProtocolSettingsAreKept(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	const settings = `{"stream":{"listener":{"port":9093,"ratio":1.5,"names":["b","a",null]},` +
		`"enabled":true,"<note>":"1e999"}}`
	const want = "map[stream:map[<note>:1e999 enabled:true listener:map[names:[b a <nil>] port:9093 ratio:1.5]]]"
	for name, contentType := range map[string]string{"json": jsonType, "yaml": yamlType} {
		a.post(k.plural+"?fieldValidation=Strict", k.with(withProtocols(settings), name), "Content-Type", contentType).
			want(http.StatusCreated).has("spec.config.protocols", want)
		a.get(k.plural+"/"+name).has("spec.config.protocols", want)
		a.put(k.plural+"/"+name+"?fieldValidation=Strict", k.with(withProtocols(settings), name),
			"Content-Type", contentType).
			want(http.StatusOK).has("metadata.generation", "1")
	}
	applied := a.patch(k.plural+"/json?fieldManager=me&fieldValidation=Strict", applyPatch,
		k.apply("json", withProtocols(settings))).want(http.StatusOK)
	if warning := applied.header.Get("Warning"); warning != "" {
		t.Errorf("warning of an apply: got %q, want none", warning)
	}
	// Managers own individual settings.
	a.patch(k.plural+"/json?fieldManager=other", applyPatch,
		k.apply("json", withProtocols(`{"stream":{"listener":{"backlog":7}}}`))).
		want(http.StatusOK).has("spec.config.protocols.stream.listener",
		"map[backlog:7 names:[b a <nil>] port:9093 ratio:1.5]")
	a.patch(k.plural+"/json?fieldManager=other", applyPatch,
		k.apply("json", withProtocols(`{"stream":{"listener":{"port":1}}}`))).
		want(http.StatusConflict)
	a.patch(k.plural+"/json?fieldManager=other", applyPatch,
		k.apply("json", `{"instanceName":"i","location":"local"}`)).
		want(http.StatusOK).has("spec.config.protocols", want)
	a.patch(k.plural+"/yaml", mergePatch,
		`{"spec":{"config":{"protocols":{"stream":{"listener":{"port":1},"enabled":null}}}}}`).
		want(http.StatusOK).has("spec.config.protocols.stream.listener.port", "1",
		"spec.config.protocols.stream.enabled", "<nil>", "metadata.generation", "2")
	a.patch(k.plural+"/yaml", strategic, `{"spec":{"config":{"protocols":{"mqtt":{"listener":{"port":2}}}}}}`).
		want(http.StatusOK).has("spec.config.protocols.mqtt.listener.port", "2",
		"spec.config.protocols.stream.listener.ratio", "1.5")
	// A strategic merge patch has no rules for the settings, and the error says what to send
	// instead.
	refused := a.patch(k.plural+"/yaml", strategic,
		`{"spec":{"config":{"protocols":{"mqtt":{"listener":{"port":3}}}}}}`)
	if message := refused.want(http.StatusBadRequest).failure().Message; !contains(message,
		"spec.config.protocols", mergePatch) {
		t.Errorf("strategic merge patch of settings: got message %q, want the field and the media type in it", message)
	}
	a.patch(k.plural+"/yaml", jsonPatch,
		`[{"op":"add","path":"/spec/config/protocols/stream/listener/port","value":3}]`).
		want(http.StatusOK).has("spec.config.protocols.stream.listener.port", "3")
}

// TestProtocolSettingsInProtobuf checks that protobuf behaves like JSON, and that empty settings of
// old clients enable a protocol.
func TestProtocolSettingsInProtobuf(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	for name, clusters := range map[string]interface {
		Create(ctx context.Context, o *v1alpha1.MessagingCluster,
			options metav1.CreateOptions) (*v1alpha1.MessagingCluster, error)
		Get(ctx context.Context, name string, options metav1.GetOptions) (*v1alpha1.MessagingCluster, error)
		Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions,
			subresources ...string) (*v1alpha1.MessagingCluster, error)
	}{
		"json":     c.typed.CloudV1alpha1().MessagingClusters("acme"),
		"protobuf": c.binary.CloudV1alpha1().MessagingClusters("acme"),
	} {
		_, err := clusters.Create(t.Context(), &v1alpha1.MessagingCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "local", Config: &v1alpha1.ClusterConfig{
				Protocols: map[string]v1alpha1.ProtocolSettings{
					"on": {}, "off": {Raw: []byte("null")},
					"set": {Raw: []byte(`{"b": 1.0, "a": [ ]}`)},
				},
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if protocols := got.Spec.Config.Protocols; len(protocols) != 2 || string(protocols["on"].Raw) != `{}` ||
			string(protocols["set"].Raw) != `{"a":[],"b":1}` {
			t.Errorf("protocols with %s: got %v, want on and set", name, protocols)
		}
	}
	_, err := c.binary.CloudV1alpha1().MessagingClusters("acme").Create(t.Context(), &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "broken"},
		Spec: v1alpha1.MessagingClusterSpec{InstanceName: "i", Location: "local", Config: &v1alpha1.ClusterConfig{
			Protocols: map[string]v1alpha1.ProtocolSettings{"x": {Raw: []byte(`{"a":`)}},
		}},
	}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("settings that are not JSON: got %v, want an error", err)
	}
	typed := apply.MessagingCluster("json", "acme").WithSpec(apply.MessagingClusterSpec().WithInstanceName("i").
		WithConfig(apply.ClusterConfig().WithProtocols(
			map[string]v1alpha1.ProtocolSettings{"more": {Raw: []byte(`{"a":{"b":true}}`)}})))
	after, err := c.typed.CloudV1alpha1().MessagingClusters("acme").Apply(t.Context(), typed,
		metav1.ApplyOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(after.Spec.Config.Protocols["more"].Raw); got != `{"a":{"b":true}}` {
		t.Errorf("applied settings: got %s", got)
	}
}

// TestProtocolSettingsAreBounded checks the limits of size and depth, and that settings are
// objects.
func TestProtocolSettingsAreBounded(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	many := make([]string, 5)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{"a":%q}`, i, strings.Repeat("x", 15<<10))
	}
	nested := func(levels int) string {
		return `{"stream":` + strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels) + `}`
	}
	a.post(k.plural, k.with(withProtocols(nested(16)), "deep")).want(http.StatusCreated)
	for name, tc := range map[string]struct{ protocols, field string }{
		"too deep":   {nested(17), "spec.config.protocols[stream]"},
		"far deeper": {nested(5000), ""},
		"too long": {
			fmt.Sprintf(`{"stream":{"a":%q}}`, strings.Repeat("x", 16<<10)),
			"spec.config.protocols[stream]",
		},
		"too much": {"{" + strings.Join(many, ",") + "}", "spec.config.protocols"},
		"a text":   {`{"stream":"on"}`, "spec.config.protocols[stream]"},
		"a number": {`{"stream":1}`, "spec.config.protocols[stream]"},
		"true":     {`{"stream":true}`, "spec.config.protocols[stream]"},
		"a list":   {`{"stream":[]}`, "spec.config.protocols[stream]"},
	} {
		spec := withProtocols(tc.protocols)
		refused := a.post(k.plural, k.with(spec, "bad")).want(http.StatusBadRequest, http.StatusUnprocessableEntity)
		if got := refused.failure().Message; !strings.Contains(got, tc.field) {
			t.Errorf("%s: got message %.300q, want %s in it", name, got, tc.field)
		}
		for _, answer := range []reply{
			a.patch(k.plural+"/deep", mergePatch, `{"spec":`+spec+`}`),
			a.patch(k.plural+"/deep", strategic, `{"spec":`+spec+`}`),
			a.patch(k.plural+"/deep?fieldManager=me&force=true", applyPatch, k.apply("deep", spec)),
			a.put(k.plural+"/deep", k.with(spec, "deep")),
		} {
			answer.want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
		}
	}
}

// TestProtocolSettingsAreDocumented checks the schema of settings in the OpenAPI documents.
func TestProtocolSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	a := start(t)
	for document, path := range map[string]string{
		"/openapi/v2":           "definitions",
		"/openapi/v3" + apiPath: "components.schemas",
	} {
		schemas, _ := a.get(document).want(http.StatusOK).at(path).(map[string]any)
		settings, _ := schemas["io.vendor.cloud.v1alpha1.ProtocolSettings"].(map[string]any)
		if settings["x-kubernetes-preserve-unknown-fields"] != true || settings["type"] != "object" {
			t.Errorf("schema of settings in %s: got %v", document, settings)
		}
	}
}

// TestOmittedProtocols checks that a cluster that is created without protocols has stream, in every way to
// create it, that a replace without them changes none, and that each way to disable them works.
func TestOmittedProtocols(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	const bare, at, stream = `{"instanceName":"i","location":"local"}`, "spec.config.protocols", "map[stream:map[]]"
	item := func(name string) string { return k.plural + "/" + name }
	a.post(k.plural, k.with(bare, "posted")).want(http.StatusCreated).has(at, stream)
	a.patch(item("applied")+"?fieldManager=me", applyPatch, k.apply("applied", bare)).
		want(http.StatusCreated).has(at, stream)
	a.patch(item("applied")+"?fieldManager=me", applyPatch, k.apply("applied", bare)).
		want(http.StatusOK).has(at, stream, "metadata.generation", "1")
	a.put(item("posted"), k.with(bare, "posted")).want(http.StatusOK).has(at, stream, "metadata.generation", "1")
	a.put(item("posted"), k.with(withProtocols("{}"), "posted")).want(http.StatusOK).has(at, "<nil>")
	a.put(item("posted"), k.with(bare, "posted")).want(http.StatusOK).has(at, "<nil>") // stays disabled
	a.patch(item("applied"), mergePatch, `{"spec":{"config":{"protocols":{"stream":null}}}}`).
		want(http.StatusOK).has(at, "<nil>")
	for name, none := range map[string]string{"none": "{}", "null": `{"stream":null}`} {
		a.post(k.plural, k.with(withProtocols(none), name)).want(http.StatusCreated).has(at, "<nil>")
		a.patch(item(name+"-applied")+"?fieldManager=me", applyPatch, k.apply(name+"-applied", withProtocols(none))).
			want(http.StatusCreated).has(at, "<nil>")
	}
}
