package attack

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"freshet/test/poll"
	"freshet/test/tally"
	"freshet/test/testserver"
)

// entry is a row of the table of secrets at rest in SECURITY.md.
type entry struct {
	mode    string
	present bool // the file always exists
}

// TestAttackSecretsAtRest compares the data directory of a running server with the table
// in SECURITY.md: every file is in the table and has the documented mode, and only the
// files that may hold a secret of the administrator contain it.
func TestAttackSecretsAtRest(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{})
	table := secretsTable(t)
	poll.Until(t, time.Minute, "the file with the sign-in link, which the server writes when it is ready", func() bool {
		_, err := os.Stat(filepath.Join(server.DataDir, "sign-in.link"))
		return err == nil
	})
	entries, err := os.ReadDir(server.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	attempts, successes := 0, 0
	seen := map[string]bool{}
	for _, e := range entries {
		row, ok := table[e.Name()]
		if !ok {
			t.Errorf("%s is in the data directory but not in SECURITY.md", e.Name())
			continue
		}
		seen[e.Name()] = true
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := fmt.Sprintf("%04o", info.Mode().Perm()); mode != row.mode {
			successes++
			t.Errorf("%s: got mode %s, want %s as in SECURITY.md", e.Name(), mode, row.mode)
		}
		attempts++
	}
	for name, row := range table {
		if row.present && !seen[name] {
			t.Errorf("SECURITY.md lists %s, which is not in the data directory", name)
		}
	}
	for secret, allowed := range map[string][]string{
		server.Token:        {"admin.token", "kubeconfig"},
		server.ClientSecret: {"admin.json"},
	} {
		n, found := filesWith(t, server.DataDir, secret)
		attempts += n
		for _, name := range found {
			if !strings.Contains(strings.Join(allowed, " ")+" ", name+" ") {
				successes++
				t.Errorf("%s contains a secret in plain text; only %v may contain it", name, allowed)
			}
		}
		if len(found) == 0 {
			t.Errorf("no file contains the secret that %v should contain", allowed)
		}
	}
	tally.Attack(t, "find a secret in a file that must not contain it", attempts, successes)
}

// secretsTable parses the table: file names, modes, and whether the files always exist.
func secretsTable(t *testing.T) map[string]entry {
	t.Helper()
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]entry{}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `([^`]+)`( \\([^|]*\\))? \\| (0[0-7]{3}) \\|").FindAllStringSubmatch(string(text), -1) {
		table[row[1]] = entry{row[3], row[2] == ""}
	}
	if len(table) < 10 {
		t.Fatalf("got %d rows of the table of secrets, want at least 10", len(table))
	}
	return table
}

// filesWith reads every file below a directory. It returns their number and the names of
// those that contain a text.
func filesWith(t *testing.T, dir, text string) (files int, found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files appear and disappear while the server runs
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // the file was removed
		}
		files++
		if bytes.Contains(content, []byte(text)) {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, found
}
