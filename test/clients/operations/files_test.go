package operations

import (
	"os/exec"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestSystemd checks that systemd accepts the unit, with and without a configuration file.
func TestSystemd(t *testing.T) {
	t.Parallel()
	analyze := need(t, "systemd-analyze", "systemd")
	for _, args := range [][]string{
		{"systemd"},
		{"systemd", "--config", "/etc/freshet.yaml"},
		{"systemd", "--user", "daemon", "--backup-dir", "/var/backups/freshet"},
		{"systemd", "--tls-cert", "/etc/ssl/a.crt", "--tls-key", "/etc/ssl/a.key"},
	} {
		folder := t.TempDir()
		unit := file(t, folder, "freshet.service", generate(t, append(args, "--binary", binary)...))
		// systemd-analyze prints nothing for a valid unit. It fails for invalid settings and
		// only warns about unknown ones, so any output is an error.
		if out := run(t, folder, analyze, "verify", unit); out != "" {
			t.Errorf("systemd-analyze verify: %s", out)
		}
	}
}

// TestCompose checks that the library of docker compose accepts the file, and that ports
// are published on loopback only.
func TestCompose(t *testing.T) {
	t.Parallel()
	text := generate(t, "compose", "--image", "registry.example.com/freshet:1")
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
	}, func(o *loader.Options) { o.SetProjectName("freshet", true) })
	if err != nil {
		t.Fatal(err)
	}
	service, err := project.GetService("freshet")
	if err != nil {
		t.Fatal(err)
	}
	if service.Image != "registry.example.com/freshet:1" || service.HealthCheck == nil || !service.ReadOnly {
		t.Errorf("got image %q, health check %v, read only %v", service.Image, service.HealthCheck, service.ReadOnly)
	}
	for _, port := range service.Ports {
		if port.HostIP != "127.0.0.1" {
			t.Errorf("port %s is published on %q, want loopback only", port.Published, port.HostIP)
		}
	}
	for _, volume := range service.Volumes {
		if _, declared := project.Volumes[volume.Source]; !declared || volume.Target != "/var/lib/freshet" {
			t.Errorf("volume %s at %s is not declared or not mounted at the data directory", volume.Source, volume.Target)
		}
	}
	// The container must run serve with the data directory in the volume.
	data := service.Environment["FRESHET_DATA_DIR"]
	if args := service.Command; len(args) == 0 || args[0] != "serve" || data == nil || *data != "/var/lib/freshet" {
		t.Errorf("got command %q with the data directory %v", args, data)
	}
}

// TestComposeConfig checks the file with docker compose itself.
func TestComposeConfig(t *testing.T) {
	t.Parallel()
	docker := need(t, "docker", "docker-compose-v2")
	if out, err := exec.CommandContext(t.Context(), docker, "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: docker compose is not installed: %s", out)
	}
	folder := t.TempDir()
	run(t, folder, docker, "compose", "--file", file(t, folder, "compose.yaml", generate(t, "compose")),
		"config", "--quiet")
}
