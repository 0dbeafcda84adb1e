package charts

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// binary returns the freshet binary of make test-charts.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("FRESHET_BIN")
	if path == "" {
		t.Fatal("FRESHET_BIN is not set; run make test-charts")
	}
	return path
}

// freshet runs a command and returns what it prints.
func freshet(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary(t), args...).CombinedOutput()
	return string(out), err
}

// generate returns the manifests of `freshet generate kubernetes`.
func generate(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"generate", "kubernetes", "--name", release, "--namespace", namespace}, args...)
	out, err := freshet(t, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

// objects parses YAML documents strictly, and returns the objects by "Kind/name".
func objects(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(document+"\n"), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) == 0 {
			continue // comments
		}
		metadata, _ := object["metadata"].(map[string]any)
		name := fmt.Sprintf("%v/%v", object["kind"], metadata["name"])
		if found[name] != nil || metadata["namespace"] != namespace {
			t.Fatalf("%s: twice, or in another namespace:\n%s", name, document)
		}
		found[name] = object
	}
	return found
}
