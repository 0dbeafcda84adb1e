package operate_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestVersionsAgree compares the version that the program prints with those of the running server: at /version and in
// the metrics. A build of the Makefile has the version of the file VERSION.
func TestVersionsAgree(t *testing.T) {
	t.Parallel()
	var build struct{ Version, Commit string }
	if err := json.Unmarshal([]byte(printed(t, "version", "-o", "json")), &build); err != nil {
		t.Fatal(err)
	}
	if build.Version == "" || build.Commit == "" {
		t.Fatalf("freshet version -o json: got %+v, want a version and a commit", build)
	}
	for _, args := range [][]string{{"version"}, {"--version"}} {
		want := "freshet " + build.Version + " (" + build.Commit + ","
		if got := printed(t, args...); !strings.HasPrefix(got, want) {
			t.Errorf("freshet %s: got %q, want it to begin with %q", args[0], got, want)
		}
	}
	port, ops := freePort(t), freePort(t)
	p := start(t, nil, "serve", "--data-dir", t.TempDir(), "--http", "127.0.0.1:"+port, "--https", "off",
		"--ops", "127.0.0.1:"+ops)
	p.await("http://127.0.0.1:" + port + "/readyz")
	var server struct{ GitVersion string }
	if err := json.Unmarshal([]byte(text(t, "http://127.0.0.1:"+port+"/version")), &server); err != nil {
		t.Fatal(err)
	}
	if _, version, _ := strings.Cut(server.GitVersion, "+freshet."); version != build.Version {
		t.Errorf("/version: got gitVersion %q, want +freshet.%s at its end", server.GitVersion, build.Version)
	}
	metrics := text(t, "http://127.0.0.1:"+ops+"/metrics")
	info := regexp.MustCompile(`freshet_build_info\{.*version="([^"]+)".*\}`).FindStringSubmatch(metrics)
	if info == nil || info[1] != build.Version {
		t.Errorf("freshet_build_info: got %q, want version %q", info, build.Version)
	}
}

// printed returns what a command prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	out, code := run(t, nil, args...)
	if code != 0 {
		t.Fatalf("freshet %s: got exit code %d, want 0; output: %s", strings.Join(args, " "), code, out)
	}
	return out
}

// text returns the body of a response with status 200.
func text(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got status %d %v, want 200", url, response.StatusCode, err)
	}
	return string(body)
}
