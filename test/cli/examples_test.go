package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/pages"
	"freshet/test/testserver"
)

// commandDoc is a command as `freshet docs json` lists it.
type commandDoc struct {
	Path, Examples, Short string
	Flags                 []struct{ Name, Value string }
}

// preparations is the folder with what the examples need, by command: NAME.sh runs before
// the examples, in the same directory, and can source shared files from $EXAMPLES.
// not-run.txt, own-server.txt and endless.txt list special cases.
const preparations = "testdata/examples"

// TestExamples runs every example of every help text. Every command must have three
// examples, and a command whose examples are not run must be in not-run.txt with a reason.
func TestExamples(t *testing.T) {
	t.Parallel()
	notRun, alone, endless := table(t, "not-run.txt"), table(t, "own-server.txt"), table(t, "endless.txt")
	skipped := maps.Clone(notRun)          // also in the help of other commands
	ownServer := map[string][]commandDoc{} // by name of the server
	for _, c := range commands(t) {
		blocks := examples(c.Examples)
		if len(blocks) < 3 {
			t.Errorf("%s has %d examples, want at least 3", c.Path, len(blocks))
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s has the summary %q, want a few words without a full stop", c.Path, c.Short)
		}
		if reason, ok := take(notRun, c.Path); ok {
			if len(reason) < 20 {
				t.Errorf("%s: %q is too short a reason for not running its examples", c.Path, reason)
			}
			continue
		}
		if entry, ok := take(alone, c.Path); ok {
			name, _, _ := strings.Cut(entry, ": ")
			ownServer[name] = append(ownServer[name], c)
			continue
		}
		t.Run(c.Path, func(t *testing.T) {
			t.Parallel()
			runExamples(t, c, server, endless, skipped)
		})
	}
	for name, list := range ownServer {
		t.Run("server of "+name, func(t *testing.T) {
			t.Parallel()
			s, err := startOwn()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Stop(time.Minute); err != nil {
					t.Error(err)
				}
			})
			for _, c := range list {
				t.Run(c.Path, func(t *testing.T) { runExamples(t, c, s, endless, skipped) })
			}
		})
	}
	for name, left := range map[string]map[string]string{"not-run.txt": notRun, "own-server.txt": alone} {
		for path := range left {
			t.Errorf("%s names %q, which is not a command", name, path)
		}
	}
}

// commands returns all commands of the binary.
func commands(t *testing.T) []commandDoc {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "freshet"), "docs", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []commandDoc
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Fatalf("freshet docs json lists %d commands, want at least 20", len(list))
	}
	return list
}

// examples splits the examples of a help text: each begins with a comment.
func examples(text string) []string {
	var blocks []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# ") {
			blocks = append(blocks, "")
		}
		if len(blocks) > 0 {
			blocks[len(blocks)-1] += line
		}
	}
	return blocks
}

func runExamples(t *testing.T, c commandDoc, s *testserver.Server, endless, skipped map[string]string) {
	t.Helper()
	dir := t.TempDir()
	if err := populate(dir, s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"always", strings.ReplaceAll(c.Path, " ", "-")} {
		script, err := os.ReadFile(filepath.Join(preparations, name+".sh"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := bash(t.Context(), dir, s, string(script)); err != nil {
			t.Fatalf("%s.sh: %v\n%s", name, err, out)
		}
	}
	for _, block := range examples(c.Examples) {
		if anyListed(block, skipped) {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		isEndless := anyListed(block, endless)
		if isEndless {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		}
		out, err := bash(ctx, dir, s, block)
		switch {
		case isEndless && ctx.Err() == nil:
			t.Errorf("example\n%s\nended (%v), but is listed in endless.txt:\n%s", block, err, out)
		case !isEndless && err != nil:
			t.Errorf("example\n%s\nfailed: %v\n%s", block, err, out)
		}
		cancel()
	}
}

// anyListed reports whether a line of an example is in a table.
func anyListed(block string, entries map[string]string) bool {
	for line := range strings.Lines(block) {
		if _, ok := entries[strings.TrimSpace(line)]; ok {
			return true
		}
	}
	return false
}

// bash runs a script in dir, and interrupts it when the context ends.
func bash(ctx context.Context, dir string, s *testserver.Server, script string) (string, error) {
	folder, err := filepath.Abs(preparations)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir,
		append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FRESHET_") }),
			environment(dir, s)...)
	cmd.Env = append(cmd.Env, "EXAMPLES="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// table reads a file with lines of the form NAME: TEXT.
func table(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(preparations, name))
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			key, value, _ := strings.Cut(line, ": ")
			entries[key] = value
		}
	}
	return entries
}

func take(entries map[string]string, key string) (string, bool) {
	value, ok := entries[key]
	delete(entries, key)
	return value, ok
}

// TestHowTo runs the commands in docs/howto/cli.md.
func TestHowTo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/howto/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := populate(dir, server); err != nil {
		t.Fatal(err)
	}
	if out, err := bash(t.Context(), dir, server, pages.Commands(string(page))); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReference checks that docs/reference/cli matches the commands.
func TestReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "freshet"), "docs", "markdown",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := reference(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reference("../../docs/reference/cli")
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("docs/reference/cli/%s is out of date: run make cli-reference", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("docs/reference/cli/%s belongs to no command: run make cli-reference", name)
	}
}

func reference(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the reference: %w", err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts, nil
}
