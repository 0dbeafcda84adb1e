package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestArchiveIsReproducible builds the command line's archive from clones with two paths, with a key made for the test.
// All files must be equal, and their signature must verify with ssh-keygen, but not after a change.
func TestArchiveIsReproducible(t *testing.T) {
	needRelease(t)
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("NOT TESTED: the signature of a release: ssh-keygen is missing")
	}
	work := t.TempDir()
	key := filepath.Join(work, "key")
	run(t, work, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	first, second := filepath.Join(work, "one"), filepath.Join(work, "another", "longer", "path")
	for _, clone := range []string{first, second} {
		run(t, "../..", nil, "git", "clone", "--quiet", "--shared", ".", clone)
		t.Setenv("FRESHET_RELEASE_KEY", key)
		run(t, clone, nil, "make", "release", "RELEASE=--only freshet-cli_linux_amd64")
	}
	run(t, work, nil, "diff", "-r", filepath.Join(first, "dist"), filepath.Join(second, "dist"))
	dist := filepath.Join(first, "dist")
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, dist, sums); err != nil {
		t.Errorf("signature: got %v, want a valid one", err)
	}
	if err := verify(t, dist, append(sums, '\n')); err == nil {
		t.Error("signature of changed sums: got no error, want one")
	}
	run(t, dist, nil, "sha256sum", "--check", "SHA256SUMS")
	const limit = 35 << 20
	info, err := os.Stat(filepath.Join(dist, "stage", "freshet-cli_linux_amd64", "freshet"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit {
		t.Errorf("size of the command line: got %d bytes, want at most %d", info.Size(), limit)
	}
}

func verify(t *testing.T, dist string, sums []byte) error {
	t.Helper()
	return start(t, dist, sums, "ssh-keygen", "-Y", "verify", "-f", "allowed_signers", "-I", "release@freshet",
		"-n", "file", "-s", "SHA256SUMS.sig")
}

func run(t *testing.T, dir string, in []byte, name string, args ...string) {
	t.Helper()
	if err := start(t, dir, in, name, args...); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, dir string, in []byte, name string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}
