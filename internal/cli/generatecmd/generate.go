// Package generatecmd has the command that writes what stands around a server:
// dashboards, rules, units. The texts are in the binary, so that they fit its version.
package generatecmd

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

//go:embed templates
var templates embed.FS

// values are what the texts leave open.
type values struct {
	Ops, Binary, Config, Image string
}

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write dashboards, rules and units that fit this version",
		Long: `Write what stands around a server to standard output: a Grafana dashboard, the
configuration of Prometheus, alert rules, a systemd unit, a compose file, and
completion of commands for a shell. They use the metrics and settings of this version.`,
		Example: `  # a dashboard to import in Grafana
  freshet generate grafana > dashboard.json

  # what Prometheus needs to know
  freshet generate prometheus > prometheus.yml
  freshet generate alerts > freshet-alerts.yml

  # a service of the system
  freshet generate systemd > freshet.service`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newGrafana(env), newPrometheus(env), newAlerts(env), newSystemd(env), newCompose(env),
		newCompletion(env))
	return command.InGroup(command.GroupServer, command.Offline(cmd)...)
}

// write fills in a text. The marks are [[ and ]], since Prometheus and Grafana have
// braces of their own.
func write(env *command.Env, name string, v values) error {
	text, err := templates.ReadFile("templates/" + name)
	if err != nil {
		return err
	}
	filled, err := template.New(name).Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return err
	}
	return filled.Execute(env.Out, v)
}

// plain is what a flag may say: it is put into files of other programs as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_~\[\]-]+$`)

func check(cmd *cobra.Command, flag, value string) error {
	if !plain.MatchString(value) {
		return command.Usagef(cmd, "--%s takes letters, digits and the signs of addresses and paths, not %q", flag,
			value)
	}
	return nil
}

func newGrafana(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "grafana",
		Short: "Write a Grafana dashboard",
		Long: `Write a Grafana dashboard: rates, backlogs, lag of consumer groups, disk, quotas,
requests and their times. It asks for the Prometheus data source when it is imported.`,
		Example: `  # import it under Dashboards, New, Import
  freshet generate grafana > dashboard.json

  # provisioned from a folder
  mkdir -p dashboards && freshet generate grafana > dashboards/freshet.json

  # the metrics that it shows
  freshet generate grafana | grep -o 'freshet_[a-z_]*' | sort -u`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error { return write(env, "grafana.json", values{}) },
	}
}

func newPrometheus(env *command.Env) *cobra.Command {
	var ops string
	cmd := &cobra.Command{
		Use:   "prometheus",
		Short: "Write a configuration for Prometheus",
		Long: `Write a configuration for Prometheus that scrapes the ops address of a server and
loads the rules of 'freshet generate alerts' from beside it.`,
		Example: `  # a server on the machine of Prometheus
  freshet generate prometheus > prometheus.yml

  # another one
  freshet generate prometheus --ops 10.0.0.5:8081 > prometheus.yml

  # with its rules
  freshet generate alerts > freshet-alerts.yml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd, "ops", ops); err != nil {
				return err
			}
			return write(env, "prometheus.yml", values{Ops: ops})
		},
	}
	cmd.Flags().StringVar(&ops, "ops", "127.0.0.1:8081", "ops `address` of the server")
	return cmd
}

func newAlerts(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "alerts",
		Short: "Write alert rules for Prometheus",
		Long: `Write alert rules for Prometheus: a server that is gone or not healthy, a full disk or
store, quotas that are nearly used up, damage, dead letters, consumers that do not keep
up, errors, backups that do not happen. The bounds are to begin with.`,
		Example: `  # beside prometheus.yml
  freshet generate alerts > freshet-alerts.yml

  # the names of the alerts
  freshet generate alerts | grep 'alert:'

  # with a higher bound for lag
  freshet generate alerts | sed 's/> 100000/> 1000000/' > freshet-alerts.yml`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error { return write(env, "alerts.yml", values{}) },
	}
}

func newSystemd(env *command.Env) *cobra.Command {
	var v values
	cmd := &cobra.Command{
		Use:   "systemd",
		Short: "Write a systemd unit",
		Long: `Write a systemd unit that runs the server as a user of its own, with data in
/var/lib/freshet and as few rights as it needs.`,
		Example: `  # to be put into /etc/systemd/system
  freshet generate systemd > freshet.service

  # with a configuration file
  freshet generate systemd --config /etc/freshet.yaml > freshet.service

  # another place of the program
  freshet generate systemd --binary /opt/freshet/bin/freshet > freshet.service`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd, "binary", v.Binary); err != nil {
				return err
			}
			if v.Config != "" {
				if err := check(cmd, "config", v.Config); err != nil {
					return err
				}
			}
			return write(env, "freshet.service", v)
		},
	}
	cmd.Flags().StringVar(&v.Binary, "binary", "/usr/local/bin/freshet", "`path` of the program")
	cmd.Flags().StringVar(&v.Config, "config", "", "configuration `file` of the server")
	return cmd
}

func newCompose(env *command.Env) *cobra.Command {
	var v values
	cmd := &cobra.Command{
		Use:   "compose",
		Short: "Write a compose file",
		Long: `Write a compose file for containers: a server with its data in a volume, reachable
from this machine alone, with a health check. The image is yours: a static binary needs
nothing besides.`,
		Example: `  # a server in a container
  freshet generate compose > compose.yaml

  # of an image of yours
  freshet generate compose --image registry.example.com/freshet:1 > compose.yaml

  # which ports does it open?
  freshet generate compose | grep -A4 'ports:'`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd, "image", v.Image); err != nil {
				return err
			}
			return write(env, "compose.yaml", v)
		},
	}
	cmd.Flags().StringVar(&v.Image, "image", "freshet:latest", "`image` with the program at /freshet")
	return cmd
}

func newCompletion(env *command.Env) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write the completion of commands for a shell",
		Long: `Write the completion of commands for a shell: ` + strings.Join(shells, ", ") +
			`. 'freshet completion' does the same.`,
		ValidArgs: shells,
		Example: `  # in this shell
  source <(freshet generate completion bash)

  # for all shells of a user of fish
  mkdir -p ~/.config/fish/completions && freshet generate completion fish > ~/.config/fish/completions/freshet.fish

  # zsh
  freshet generate completion zsh > _freshet`,
		Args: command.One("bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(env.Out, true)
			case "zsh":
				return root.GenZshCompletion(env.Out)
			case "fish":
				return root.GenFishCompletion(env.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(env.Out)
			}
			return command.Usagef(cmd, "there is no completion for %q: take %s", args[0],
				fmt.Sprintf("%s or %s", strings.Join(shells[:3], ", "), shells[3]))
		},
	}
}
