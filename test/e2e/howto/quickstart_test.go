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

// A person needs about so long to read a step, paste it and look at what it prints.
const perStep = 10 * time.Second

// TestQuickStart pastes "The first five minutes" of the README into a shell, step by
// step, and logs how long the machine takes for each (make quick-start shows it).
// FRESHET_PAUSE, a duration, is waited before each, as a person would.
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
		t.Fatalf("the README has %d steps, want more", len(steps))
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
	t.Logf("%6.2f s  freshet serve, until it is ready", total.Seconds())
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
	t.Logf("%6.2f s  altogether, in %d steps; with %s for each, a person is through after %s", total.Seconds(),
		len(steps)+1, perStep, person.Round(time.Second))
	if person > 5*time.Minute || total > time.Minute {
		t.Errorf("%s of a person's time, %s of the machine's: want under five minutes and one", person, total)
	}
}

// split makes steps of a script: lines, and heredocs as a whole.
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
			if _, mark, ok := strings.Cut(text, "<<"); ok {
				end = strings.Trim(mark, "'\" ")
			}
		}
	}
	return steps
}

// shellIn is a shell in a folder, which takes one step after the other and returns what
// it prints, and its exit code.
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
		_ = in.Close() // which ends the shell
		_ = shell.Wait()
	})
	const mark = "---step---"
	lines := bufio.NewScanner(pipe)
	return func(step string) (string, string) {
		if _, err := fmt.Fprintf(in, "%s\necho %s$?\n", strings.TrimRight(step, "\n"), mark); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for lines.Scan() {
			if status, ok := strings.CutPrefix(lines.Text(), mark); ok {
				return out.String(), status
			}
			out.WriteString(lines.Text() + "\n")
		}
		t.Fatalf("the shell has ended: %v\n%s", lines.Err(), out.String())
		return "", ""
	}
}
