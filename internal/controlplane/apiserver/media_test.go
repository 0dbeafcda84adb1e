package apiserver_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"freshet/api/v1alpha1"
)

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			created := a.post(k.plural, k.object("m")).want(http.StatusCreated)
			for _, path := range []string{k.plural + "/m", k.plural} {
				text := a.get(path, "Accept", yamlType).want(http.StatusOK)
				if got := text.header.Get("Content-Type"); got != yamlType {
					t.Errorf("Content-Type of YAML: got %q", got)
				}
				var object map[string]any
				if err := yaml.Unmarshal(text.body, &object); err != nil || bytes.HasPrefix(text.body, []byte("{")) {
					t.Errorf("%s as YAML: got %s (%v)", path, text.body, err)
				}
				binary := a.get(path, "Accept", protobufType).want(http.StatusOK)
				if got := binary.header.Get("Content-Type"); got != protobufType ||
					!bytes.HasPrefix(binary.body, []byte("k8s\x00")) {
					t.Errorf("Content-Type of protobuf: got %q: %q", got, binary.body)
				}
			}
			// An object can be written back in any of the three formats.
			for _, mediaType := range []string{yamlType, protobufType, jsonType} {
				same := a.get(k.plural+"/m", "Accept", mediaType).body
				a.put(k.plural+"/m", same, "Content-Type", mediaType).want(http.StatusOK).has("metadata.uid",
					created.at("metadata.uid").(string), "metadata.generation", "1")
			}
			text := "apiVersion: cloud.vendor.io/v1alpha1\nkind: " + k.kind +
				"\nmetadata: {name: yes-yaml}\nspec: " + k.spec + "\n"
			a.post(k.plural, text, "Content-Type", yamlType, "Accept", yamlType).want(http.StatusCreated)
			a.get(k.plural + "/yes-yaml").want(http.StatusOK)
		})
	}
}

const protobufType = "application/vnd.kubernetes.protobuf"

func TestProtobufCreate(t *testing.T) {
	t.Parallel()
	a := start(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	user := &v1alpha1.User{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cloud.vendor.io/v1alpha1", Kind: "User"},
		ObjectMeta: metav1.ObjectMeta{Name: "ann"},
		Spec:       v1alpha1.UserSpec{Email: "ann@example.com"},
	}
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(user, &body); err != nil {
		t.Fatal(err)
	}
	a.post("users", body.Bytes(), "Content-Type", protobufType).want(http.StatusCreated).has("spec.email",
		"ann@example.com")
	a.post("users", body.Bytes()[:body.Len()-3], "Content-Type", protobufType).want(http.StatusBadRequest).failure()
	a.post("users", "k8s\x00", "Content-Type", protobufType).want(http.StatusBadRequest).failure()
	a.post("users", "nope", "Content-Type", protobufType).want(http.StatusBadRequest).failure()
}

func TestAccept(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	for accept, want := range map[string]string{
		"":                                  jsonType,
		"*/*":                               jsonType,
		"text/html,application/yaml":        yamlType,
		"application/yaml;q=0.9, */*;q=0.1": yamlType,
		protobufType + ",application/json":  protobufType,
	} {
		if res := a.get("users/ann", "Accept", accept); res.code != http.StatusOK ||
			res.header.Get("Content-Type") != want {
			t.Errorf("Accept %q: got %d and %q, want %q", accept, res.code, res.header.Get("Content-Type"), want)
		}
	}
	for _, path := range []string{"users/ann", "users", "users/absent"} {
		a.get(path, "Accept", "text/html").want(http.StatusNotAcceptable)
	}
	// Errors are also in the accepted format.
	if body := a.get("users/absent", "Accept", yamlType).want(http.StatusNotFound).body; !strings.Contains(string(body),
		"kind: Status") {
		t.Errorf("error as YAML: got %s, want a Status", body)
	}
	if body := a.get("users/absent", "Accept", protobufType).want(http.StatusNotFound).body; !bytes.HasPrefix(body,
		[]byte("k8s\x00")) {
		t.Errorf("error as protobuf: got %q, want protobuf", body)
	}
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "nonsense/"} {
		a.post("users", find("User").object("bob"), "Content-Type",
			contentType).want(http.StatusUnsupportedMediaType).failure()
	}
}

func TestPretty(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	calls := map[string]func(q string) reply{
		"create":  func(q string) reply { return a.post("users?dryRun=All&"+q, k.object("new")) },
		"get":     func(q string) reply { return a.get("users/ann?" + q) },
		"list":    func(q string) reply { return a.get("users?" + q) },
		"replace": func(q string) reply { return a.post("users/ann?"+q, k.object("ann")) },
		"patch":   func(q string) reply { return a.patch("users/ann?"+q, mergePatch, `{}`) },
		"delete":  func(q string) reply { return a.delete("users/ann?dryRun=All&" + q) },
		"error":   func(q string) reply { return a.get("users/absent?" + q) },
	}
	a.post("users", k.object("ann")).want(http.StatusCreated)
	for name, call := range calls {
		for query, pretty := range map[string]bool{
			"pretty=true": true, "pretty=1": true, "pretty=false": false,
			"pretty=0": false, "": false,
		} {
			if got := bytes.Contains(bytes.TrimSpace(call(query).body), []byte("\n  ")); got != pretty {
				t.Errorf("%s with %q: got pretty %v, want %v", name, query, got, pretty)
			}
		}
	}
}

// TestUnknownFields checks that unknown fields are dropped with a warning, or rejected with strict
// validation.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	body := k.with(`{"email":"a@b.c","surplus":1}`, "ann")
	warned := a.post("users", body).want(http.StatusCreated)
	if warning := warned.header.Get("Warning"); !strings.Contains(warning, "spec.surplus") {
		t.Errorf("warning: got %q, want the unknown field in it", warning)
	}
	if strings.Contains(string(warned.body), "surplus") {
		t.Errorf("unknown field is stored: %s", warned.body)
	}
	for _, call := range []reply{
		a.post("users?fieldValidation=Strict", k.with(`{"email":"a@b.c","surplus":1}`, "bob")),
		a.put("users/ann?fieldValidation=Strict", body),
		a.post("users/ann?fieldValidation=Strict", body),
		a.patch("users/ann?fieldValidation=Strict", mergePatch, `{"spec":{"surplus":1}}`),
		a.post("users?fieldValidation=Strict", `{"metadata":{"name":"bob","name":"eve"},"spec":{"email":"a@b.c"}}`),
	} {
		if message := call.want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure().Message; !contains(
			message, "field") {
			t.Errorf("message: got %q, want the field in it", message)
		}
	}
	if warning := a.put("users/ann?fieldValidation=Ignore",
		body).want(http.StatusOK).header.Get("Warning"); warning != "" {
		t.Errorf("warning with fieldValidation=Ignore: got %q, want none", warning)
	}
	a.put("users/ann?fieldValidation=Loose", body).want(http.StatusUnprocessableEntity).failure()
}
