package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandLineWithoutServer checks that a build with the tag cli links no part of the server: no etcd, NATS,
// Pebble or Kubernetes API server.
func TestCommandLineWithoutServer(t *testing.T) {
	t.Parallel()
	if err := readFolders("../.."); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=cli", "./cmd/freshet")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(out))
	if len(listed) < 300 {
		t.Fatalf("packages of the command line: got %d, want several hundred", len(listed))
	}
	for _, path := range listed {
		for _, forbidden := range []string{
			"go.etcd.io/", "github.com/nats-io/", "github.com/cockroachdb/", "k8s.io/apiserver/", "k8s.io/api/",
			"k8s.io/client-go/kubernetes", "google.golang.org/grpc", "github.com/google/cel-go/", "freshet/console",
			"freshet/internal/server", "freshet/internal/surfaces/", "freshet/internal/controlplane/",
			"freshet/internal/storage/", "freshet/internal/dataplane/",
		} {
			if strings.HasPrefix(path, forbidden) {
				t.Errorf("the command line without the server links %s", path)
			}
		}
	}
}

// TestVersionAndChangelog checks that VERSION is a semantic version later than the released ones, and that
// hack/previous-version has the newest version of the changelog before it. The chart and the examples' packages
// have the version of VERSION.
func TestVersionAndChangelog(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	version := strings.TrimSuffix(read("../../VERSION"), "\n")
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`).MatchString(version) {
		t.Fatalf("VERSION: got %q, want a semantic version without a v", version)
	}
	headings := regexp.MustCompile(`(?m)^## \[([^]]+)\]`).FindAllStringSubmatch(read("../../CHANGELOG.md"), -1)
	if len(headings) < 2 || headings[0][1] != "Unreleased" && headings[0][1] != version {
		t.Fatalf("newest heading of the changelog: got %v, want Unreleased or %s", headings, version)
	}
	released := headings[1][1]
	if headings[0][1] == "Unreleased" && released == version {
		t.Errorf("version %s is in the changelog already; VERSION must have the next one", version)
	}
	previous := regexp.MustCompile(`(?m)^(\d\S*) [0-9a-f]{40}$`).FindStringSubmatch(read("../../hack/previous-version"))
	if previous == nil || previous[1] != released {
		t.Errorf("hack/previous-version: got %v, want version %s of the changelog", previous, released)
	}
	for path, line := range map[string]string{
		"deploy/helm/freshet/Chart.yaml":   "version: %s",
		"examples/python/pyproject.toml":   "version = %q",
		"examples/typescript/package.json": "  \"version\": %q,",
	} {
		want := fmt.Sprintf(line, version)
		if !slices.Contains(strings.Split(read("../../"+path), "\n"), want) {
			t.Errorf("%s: got no line %q, want the version of the file VERSION", path, want)
		}
	}
	if want := "appVersion: " + version + "\n"; !strings.Contains(read("../../deploy/helm/freshet/Chart.yaml"), want) {
		t.Errorf("deploy/helm/freshet/Chart.yaml: got no line %q, want the version of the file VERSION", want)
	}
}
