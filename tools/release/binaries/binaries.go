// Package binaries compiles the programs of a release, and lets one of them write its man pages and
// completion scripts. Equal commits and equal versions of Go give equal bytes, whatever the path of the
// repository is.
package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"freshet/tools/release/plan"
)

// versionPackage has the variables that the linker sets.
const versionPackage = "freshet/internal/base/version"

// Build compiles the programs of all targets into the stage, and then writes the man pages and completions.
func Build(ctx context.Context, p *plan.Plan) error {
	if err := os.RemoveAll(p.Stage()); err != nil {
		return err
	}
	flags, err := linkerFlags(ctx, p)
	if err != nil {
		return err
	}
	for _, t := range p.Targets {
		fmt.Println("compiling", t)
		if err := compile(ctx, p, t, flags, p.Binary(t)); err != nil {
			return err
		}
	}
	return describe(ctx, p, flags)
}

// Environment returns the environment of go commands for a target. Settings of the user that change what is
// compiled are removed.
func Environment(t plan.Target) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
}

// Tags returns the value of -tags for a target.
func Tags(t plan.Target) string {
	if t.CLI {
		return "cli"
	}
	return ""
}

func compile(ctx context.Context, p *plan.Plan, t plan.Target, flags, file string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+Tags(t),
		"-ldflags="+flags, "-o", file, "./cmd/freshet")
	cmd.Dir, cmd.Env = p.Root, Environment(t)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compiling %s: %w", t, err)
	}
	return nil
}

// linkerFlags removes symbols and sets the versions. The Kubernetes libraries have versions 0.N.P for
// Kubernetes 1.N.P, the version that kubectl reads.
func linkerFlags(ctx context.Context, p *plan.Plan) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Version}}", "k8s.io/apiserver")
	cmd.Dir, cmd.Stderr = p.Root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of the Kubernetes libraries: %w", err)
	}
	minorPatch, found := strings.CutPrefix(strings.TrimSpace(string(out)), "v0.")
	minor, _, ok := strings.Cut(minorPatch, ".")
	if !found || !ok {
		return "", fmt.Errorf("version of k8s.io/apiserver: got %q, want v0.MINOR.PATCH", out)
	}
	const kube = "k8s.io/component-base/version"
	return strings.Join([]string{
		"-s", "-w", "-buildid=",
		"-X", versionPackage + ".version=" + p.Version, "-X", versionPackage + ".commit=" + p.Commit,
		"-X", kube + ".gitVersion=v1." + minorPatch, "-X", kube + ".gitMajor=1", "-X", kube + ".gitMinor=" + minor,
	}, " "), nil
}

// describe writes the man pages and completions with a program for this machine.
func describe(ctx context.Context, p *plan.Plan, flags string) error {
	host := plan.Target{OS: runtime.GOOS, Arch: runtime.GOARCH, CLI: true}
	folder, err := os.MkdirTemp("", "freshet-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, plan.Name)
	if err := compile(ctx, p, host, flags, program); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, program, "docs", "man", p.ManPages()).CombinedOutput(); err != nil {
		return fmt.Errorf("writing the man pages: %w\n%s", err, out)
	}
	if err := os.MkdirAll(p.Completions(), 0o755); err != nil {
		return err
	}
	for shell, file := range map[string]string{
		"bash": "freshet.bash", "zsh": "_freshet", "fish": "freshet.fish", "powershell": "freshet.ps1",
	} {
		script, err := exec.CommandContext(ctx, program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("writing the completions of %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(p.Completions(), file), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}
