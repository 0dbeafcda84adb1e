package goclient_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const clientFolder = "../../client"

// TestSuite runs the tests and examples of each package of the client against a server of its own. It fails if one
// of them was skipped.
func TestSuite(t *testing.T) {
	t.Parallel()
	readSources(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	list.Dir = clientFolder
	packages := strings.Fields(string(must[[]byte](t)(list.Output())))
	if len(packages) < 3 {
		t.Fatalf("got the packages %q, want at least 3 with tests", packages)
	}
	for _, p := range packages {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			args := []string{"test", "-v", "-timeout", "10m"}
			if testing.Short() {
				args = append(args, "-short")
			}
			suite := exec.CommandContext(t.Context(), "go", append(args, p)...)
			suite.Dir = clientFolder
			suite.Env = append(os.Environ(), environment(server)...)
			out, err := suite.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			output := string(out)
			if strings.Contains(output, "--- SKIP") || strings.Contains(output, "NOT TESTED") {
				t.Errorf("with a server no test of the client may be skipped:\n%s", output)
			}
			if strings.Count(output, "--- PASS") == 0 {
				t.Errorf("no test ran:\n%s", output)
			}
			t.Logf("%d tests and examples passed", strings.Count(output, "\n--- PASS"))
		})
	}
}

// readSources opens the client's folders. The test cache records only the files that this process itself opens, and
// would otherwise return the result of older code.
func readSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(clientFolder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(err, file.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}
