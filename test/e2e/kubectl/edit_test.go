package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edit runs kubectl edit with a sed script as the editor.
func (c *client) edit(script string, args ...string) result {
	c.t.Helper()
	editor := filepath.Join(c.t.TempDir(), "editor")
	text := []byte("#!/bin/sh\nexec sed -i '" + script + "' \"$1\"\n")
	if err := os.WriteFile(editor, text, 0o700); err != nil { //nolint:gosec // a script must be executable
		c.t.Fatal(err)
	}
	c.editor = editor
	defer func() { c.editor = "" }()
	return c.try("", append([]string{"edit"}, args...)...)
}

func TestEdit(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	if r := c.edit("s/ann@example.org/edited@example.org/", "user", "ann"); r.code != 0 ||
		!strings.Contains(r.out, "edited") {
		t.Fatalf("edit: %+v, want exit code 0 and edited", r)
	}
	c.contains(c.must("", "get", "user", "ann", "-o", "jsonpath={.spec.email}"), "edited@example.org")
	if r := c.edit("s/zzz/zzz/", "user", "ann"); !strings.Contains(r.out+r.err, "no changes made") {
		t.Errorf("edit without changes: %+v, want no changes made", r)
	}
	// kubectl reopens the editor after a rejected change, and the script then changes nothing.
	if r := c.edit("s/email: .*/email: nonsense/", "user", "ann"); r.code == 0 ||
		!strings.Contains(r.out+r.err, "is invalid") {
		t.Errorf("invalid edit: %+v, want an error with is invalid", r)
	}
	c.contains(c.must("", "get", "user", "ann", "-o", "jsonpath={.spec.email}"), "edited@example.org")
}

func TestReplaceAndForce(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	uid := c.must("", "get", "user", "ann", "-o", "jsonpath={.metadata.uid}")
	c.contains(c.must(user, "replace", "-f", "-"), "replaced")
	if now := c.must("", "get", "user", "ann", "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Error("replace created another object")
	}
	stale := strings.Replace(user, "name: ann", "name: ann\n  resourceVersion: \"1\"", 1)
	if r := c.try(stale, "replace", "-f", "-"); r.code == 0 || !strings.Contains(r.err, "Conflict") {
		t.Errorf("stale replace: %+v, want a Conflict", r)
	}
	c.contains(c.must(user, "replace", "--force", "-f", "-"), "replaced")
	if now := c.must("", "get", "user", "ann", "-o", "jsonpath={.metadata.uid}"); now == uid {
		t.Error("forced replace did not create another object")
	}
}

func TestLabelsAndAnnotations(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	if r := c.try("", "label", "user", "ann", "team=b"); r.code == 0 {
		t.Errorf("label was overwritten without --overwrite: %+v", r)
	}
	c.must("", "label", "user", "ann", "team=b", "tier=gold", "--overwrite")
	c.contains(c.must("", "get", "users", "-l", "team in (b),tier", "-o", "name"), "ann")
	c.must("", "label", "user", "ann", "tier-")
	if out := c.must("", "get", "users", "-l", "tier", "-o", "name"); out != "" {
		t.Errorf("label still exists: %s", out)
	}
	c.must("", "annotate", "user", "--all", "note=hello")
	c.contains(c.must("", "annotate", "user", "ann", "--list"), "note=hello")
	c.must("", "annotate", "user", "ann", "note-")
	if r := c.try("", "label", "user", "ann", "bad key=x"); r.code == 0 {
		t.Errorf("invalid label was accepted: %+v", r)
	}
}

func TestDryRunAndDiff(t *testing.T) {
	c := in(t)
	c.contains(c.must(user, "create", "--dry-run=server", "-o", "yaml", "-f", "-"), "uid:", "generation: 1")
	if r := c.try("", "get", "user", "ann"); r.code == 0 {
		t.Errorf("dry run created the object: %+v", r)
	}
	c.must(user, "apply", "--server-side", "-f", "-")
	c.contains(c.must("", "patch", "user", "ann", "--dry-run=server", "--type=merge", "-p", `{"spec":{"type":"dry"}}`,
		"-o", "yaml"), "type: dry")
	c.contains(c.must("", "delete", "user", "ann", "--dry-run=server"), "server dry run")
	c.must("", "get", "user", "ann")
	changed := strings.ReplaceAll(user, "team: a", "team: b")
	if r := c.try(changed, "diff", "--server-side", "-f", "-"); r.code != 1 ||
		!strings.Contains(r.out, "+    team: b") {
		t.Errorf("diff: %+v, want exit code 1 and +    team: b", r)
	}
	if r := c.try(user, "diff", "--server-side", "-f", "-"); r.code != 0 {
		t.Errorf("diff of the applied manifest: %+v, want exit code 0", r)
	}
	absent := strings.ReplaceAll(user, "name: ann", "name: bob")
	if r := c.try(absent, "diff", "-f", "-"); r.code != 1 || !strings.Contains(r.out, "+kind: User") {
		t.Errorf("diff of a missing object: %+v, want exit code 1 and +kind: User", r)
	}
}
