// Package generatecmd implements `freshet generate`, which writes files for other programs:
// dashboards, alert rules, units. Its templates are embedded in the binary, so that they
// match its metrics and settings.
package generatecmd

import (
	"bytes"
	"embed"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

//go:embed templates
var templates embed.FS

// values fill the placeholders of the unit and of the compose file. tools/release/packages fills the
// same unit for packages.
type values struct {
	Binary, Config, User, BackupDir, TLSCert, TLSKey string
	Image                                            string
}

// Commands returns `freshet generate`.
func Commands(env *command.Env) []*cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:   "generate",
		Short: "Generate dashboards, alerts, and files for systemd, compose and Kubernetes",
		Long: `Generate a Grafana dashboard, a Prometheus configuration, alert rules, a systemd unit, a
compose file, Kubernetes manifests or a shell completion script, on standard output. They
use the metrics and settings of this version.`,
		Example: `  # a dashboard to import in Grafana
  freshet generate grafana > dashboard.json

  # the configuration and the alert rules of Prometheus
  freshet generate prometheus > prometheus.yml
  freshet generate alerts > freshet-alerts.yml

  # a systemd service
  freshet generate systemd > freshet.service

  # an ensemble in Kubernetes
  freshet generate kubernetes --ensemble > freshet.yaml`,
	}, newGrafana(env), newPrometheus(env), newAlerts(env), newSystemd(env), newCompose(env),
		newKubernetes(env), newCompletion(env))
	return command.InSection(command.SectionServer, command.Offline(cmd)...)
}

// write fills in a template and prints it; format is "" or one of the formats of a YAML template. The
// delimiters are [[ and ]], because Prometheus and Grafana use braces.
func write(env *command.Env, format output.Format, name string, v any) error {
	text, err := templates.ReadFile("templates/" + name)
	if err != nil {
		return err
	}
	filled, err := template.New(name).Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return err
	}
	if format == "" || format == output.FormatYAML {
		return filled.Execute(env.Out, v)
	}
	var b bytes.Buffer
	if err := filled.Execute(&b, v); err != nil {
		return err
	}
	return output.Document(env.Out, format, b.Bytes())
}

// plain is the syntax of flag values. They are inserted into files of other programs without
// quoting.
var plain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_~\[\]-]+$`)

func check(cmd *cobra.Command, flag, value string) error {
	if !plain.MatchString(value) {
		return command.Usagef(cmd, "--%s takes letters, digits and the characters of addresses and paths, not %q", flag,
			value)
	}
	return nil
}

func newSystemd(env *command.Env) *cobra.Command {
	var v values
	cmd := &cobra.Command{
		Use:   "systemd",
		Short: "Generate a systemd unit",
		Long: `Generate a systemd unit that runs the server with minimal privileges, with its data in
/var/lib/freshet. The server runs as a dynamic user, or as an existing system user with --user.
The server notifies systemd when it is ready, and systemd restarts a server that hangs.

systemd reads the files of --tls-cert and --tls-key as root and passes copies to the server. Restart the
server after the certificate was renewed.`,
		Example: `  # copy it to /etc/systemd/system
  freshet generate systemd > freshet.service

  # with a configuration file and a certificate
  freshet generate systemd --config /etc/freshet.yaml \
    --tls-cert /etc/letsencrypt/live/example.com/fullchain.pem --tls-key /etc/letsencrypt/live/example.com/privkey.pem

  # as a system user, with automatic backups to a folder of that user
  freshet generate systemd --user freshet --backup-dir /var/backups/freshet > freshet.service`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.checkUnit(cmd); err != nil {
				return err
			}
			return write(env, "", "freshet.service", v)
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.Binary, "binary", "/usr/local/bin/freshet", "`path` of the program")
	f.StringVar(&v.Config, "config", "", "configuration `file` of the server")
	f.StringVar(&v.User, "user", "",
		"system `user` that runs the server, and name of its group (default: a dynamic user)")
	f.StringVar(&v.BackupDir, "backup-dir", "",
		"`directory` of automatic backups that the server may write; needs --user")
	f.StringVar(&v.TLSCert, "tls-cert", "", "certificate `file` for HTTPS and the Kafka protocol (PEM)")
	f.StringVar(&v.TLSKey, "tls-key", "", "key `file` of the certificate (PEM)")
	return cmd
}

// checkUnit checks the flags of a unit. Only plain values are inserted, see check.
func (v *values) checkUnit(cmd *cobra.Command) error {
	if err := check(cmd, "binary", v.Binary); err != nil {
		return err
	}
	for _, optional := range []struct{ flag, value string }{
		{"config", v.Config},
		{"user", v.User},
		{"backup-dir", v.BackupDir},
		{"tls-cert", v.TLSCert},
		{"tls-key", v.TLSKey},
	} {
		if optional.value == "" {
			continue
		}
		if err := check(cmd, optional.flag, optional.value); err != nil {
			return err
		}
	}
	if (v.TLSCert == "") != (v.TLSKey == "") {
		return command.Usagef(cmd, "--tls-cert and --tls-key are used together")
	}
	if v.BackupDir != "" && v.User == "" {
		return command.Usagef(cmd, "--backup-dir requires --user, because a dynamic user cannot own the directory")
	}
	return nil
}

func newCompose(env *command.Env) *cobra.Command {
	var v values
	var format output.Format
	cmd := &cobra.Command{
		Use:   "compose",
		Short: "Generate a compose file",
		Long: `Generate a compose file for containers: a server with its data in a volume, reachable
only from this machine, with a health check. It uses the image of this version; load it first
from the file of the release (podman load, docker load).`,
		Example: `  # a server in a container
  freshet generate compose > compose.yaml

  # with your own image
  freshet generate compose --image registry.example.com/freshet:1 > compose.yaml

  # list the ports that it opens
  freshet generate compose | grep -A4 'ports:'`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("image") {
				v.Image = image()
			}
			if err := check(cmd, "image", v.Image); err != nil {
				return err
			}
			return write(env, format, "compose.yaml", v)
		},
	}
	cmd.Flags().StringVar(&v.Image, "image", "", "`image` with the program at /freshet (default: freshet:VERSION)")
	output.AddFlag(cmd.Flags(), &format, output.FormatYAML, output.FormatJSON)
	return cmd
}

// imageName is the name of the image that a release has, without a registry and a tag.
// tools/release/image reads the same file.
//
//go:embed templates/image
var imageName string

// image returns the name of the image of this version. Characters that a tag must not have become "-".
func image() string {
	tag := strings.Map(func(r rune) rune {
		if strings.ContainsRune("._-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version.Get().Version)
	return strings.TrimSpace(imageName) + ":" + tag
}

func newCompletion(env *command.Env) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Generate the completion script of a shell",
		Long: `Generate the completion script of a shell: ` + strings.Join(shells, ", ") +
			`. 'freshet completion' does the same.`,
		ValidArgs: shells,
		Example: `  # bash, in this shell
  source <(freshet generate completion bash)

  # fish, for every new shell
  mkdir -p ~/.config/fish/completions && freshet generate completion fish > ~/.config/fish/completions/freshet.fish

  # zsh
  freshet generate completion zsh > _freshet`,
		Args: command.OneArg("bash, zsh, fish or powershell"),
		RunE: env.CompletionScript,
	}
}
