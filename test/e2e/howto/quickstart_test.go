package howto_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/pages"
	"freshet/test/testserver"
)

// perStep is the time that a person needs to read a step, paste it and look at the output.
const perStep = 10 * time.Second

// TestQuickStart pastes "The first five minutes" of the README into a shell, step by step,
// and logs the machine time of each step (make quick-start shows it). FRESHET_PAUSE is a
// duration to wait before each step, as a person would.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	var pause time.Duration
	if text := os.Getenv("FRESHET_PAUSE"); text != "" {
		var err error
		if pause, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The first five minutes\n")
	section, _, found := strings.Cut(section, "\n## ")
	steps := split(pages.Commands(section))
	if !found || len(steps) < 8 {
		t.Fatalf("README has %d steps, want at least 8", len(steps))
	}
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(folder, "freshet")); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	server, err := testserver.Start(t.Context(), binary, folder,
		testserver.Options{DataDir: filepath.Join(folder, "freshet-data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	total := time.Since(begin)
	t.Logf("%6.2f s  freshet serve until ready", total.Seconds())
	paste := shellIn(t, folder)
	for _, step := range steps {
		select {
		case <-t.Context().Done():
		case <-time.After(pause):
		}
		began := time.Now()
		out, status := paste(step)
		took := time.Since(began)
		total += took
		t.Logf("%6.2f s  %s", took.Seconds(), strings.Join(strings.Fields(step), " "))
		if status != "0" {
			t.Fatalf("%s: exit code %s\n%s", step, status, out)
		}
	}
	person := total + time.Duration(len(steps)+1)*perStep
	t.Logf("%6.2f s  total of %d steps; a person who needs %s for each finishes after %s", total.Seconds(),
		len(steps)+1, perStep, person.Round(time.Second))
	if person > 5*time.Minute || total > time.Minute {
		t.Errorf("got %s for a person and %s of machine time, want less than 5 and 1 minutes", person, total)
	}
}

// split splits a script into steps: single lines, and whole heredocs.
func split(script string) (steps []string) {
	end := ""
	for line := range strings.Lines(script) {
		switch text := strings.TrimSpace(line); {
		case end != "":
			steps[len(steps)-1] += line
			if text == end {
				end = ""
			}
		case text != "":
			steps = append(steps, line)
			if _, delimiter, ok := strings.Cut(text, "<<"); ok {
				end = strings.Trim(delimiter, "'\" ")
			}
		}
	}
	return steps
}

// shellIn starts a shell in a folder. The returned function runs one step in it and returns
// the output and the exit code.
func shellIn(t *testing.T, folder string) func(step string) (out, status string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Dir = folder
	shell.Env = append(os.Environ(), "HOME="+folder, "XDG_CONFIG_HOME=", "PATH="+folder+":"+os.Getenv("PATH"))
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stderr = shell.Stdout
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the shell
		_ = shell.Wait()
	})
	const delimiter = "---step---"
	lines := bufio.NewScanner(pipe)
	return func(step string) (string, string) {
		if _, err := fmt.Fprintf(in, "%s\necho %s$?\n", strings.TrimRight(step, "\n"), delimiter); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for lines.Scan() {
			if status, ok := strings.CutPrefix(lines.Text(), delimiter); ok {
				return out.String(), status
			}
			out.WriteString(lines.Text() + "\n")
		}
		t.Fatalf("shell has exited: %v\n%s", lines.Err(), out.String())
		return "", ""
	}
}
