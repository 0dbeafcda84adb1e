package generatecmd

import (
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// monitoring fills the placeholders of prometheus.yml and alerts.yml.
type monitoring struct {
	Job     string
	Runbook string
	Targets []scrapeTarget
}

// scrapeTarget is an ops address that Prometheus scrapes. Name becomes the label instance; it is "" for the
// address itself.
type scrapeTarget struct{ Name, Address string }

const jobUsage = "`name` of the job of Prometheus, the same for all members of an ensemble"

func newGrafana(env *command.Env) *cobra.Command {
	var format output.Format
	var ensemble bool
	cmd := &cobra.Command{
		Use:   "grafana",
		Short: "Generate a Grafana dashboard",
		Long: `Generate a Grafana dashboard: rates, backlogs, lag of consumer groups, disk, quotas,
requests and their latency. The dashboard of an ensemble also has its members, replicas,
files and log, and counts what several members report once. Grafana asks for the
Prometheus data source at the import.`,
		Example: `  # import it under Dashboards, New, Import
  freshet generate grafana > dashboard.json

  # the dashboard of an ensemble
  freshet generate grafana --ensemble > ensemble.json

  # provision it from a folder
  mkdir -p dashboards && freshet generate grafana > dashboards/freshet.json

  # the metrics that it shows
  freshet generate grafana | grep -o 'freshet_[a-z_]*' | sort -u`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if format == "" {
				format = output.FormatJSON
			}
			return output.Value(env.Out, format, newDashboard(ensemble))
		},
	}
	cmd.Flags().BoolVar(&ensemble, "ensemble", false, "generate the dashboard of an ensemble instead of one server's")
	output.AddFlag(cmd.Flags(), &format, output.FormatJSON, output.FormatYAML)
	return cmd
}

func newPrometheus(env *command.Env) *cobra.Command {
	var v monitoring
	var ops []string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "prometheus",
		Short: "Generate a Prometheus configuration",
		Long: `Generate a Prometheus configuration that scrapes the ops address of a server, or of every
member of an ensemble, and loads the rules of 'freshet generate alerts' from the same
directory. A member's name before its address becomes the label instance.`,
		Example: `  # a server on the machine of Prometheus
  freshet generate prometheus > prometheus.yml

  # a server on another machine
  freshet generate prometheus --ops 10.0.0.5:8081 > prometheus.yml

  # the members of an ensemble, with their names
  freshet generate prometheus --ops a=10.0.0.1:8081,b=10.0.0.2:8081,c=10.0.0.3:8081 > prometheus.yml

  # its alert rules
  freshet generate alerts > freshet-alerts.yml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := check(cmd, "job", v.Job); err != nil {
				return err
			}
			if v.Targets, err = scrapeTargets(cmd, ops); err != nil {
				return err
			}
			return write(env, format, "prometheus.yml", v)
		},
	}
	cmd.Flags().StringSliceVar(&ops, "ops", []string{"127.0.0.1:8081"},
		"ops `address` of the server, or of each member as name=address; may be repeated or have commas")
	cmd.Flags().StringVar(&v.Job, "job", "freshet", jobUsage)
	output.AddFlag(cmd.Flags(), &format, output.FormatYAML, output.FormatJSON)
	return cmd
}

// scrapeTargets parses the values of --ops. Two targets with one name or address would be one series.
func scrapeTargets(cmd *cobra.Command, ops []string) (list []scrapeTarget, err error) {
	taken := map[string]bool{}
	for _, value := range ops {
		name, address, named := strings.Cut(value, "=")
		if !named {
			name, address = "", value
		}
		if named && name == "" || address == "" {
			return nil, command.Usagef(cmd, "--ops takes an address or name=address, not %q", value)
		}
		if err := check(cmd, "ops", value); err != nil {
			return nil, err
		}
		for _, unique := range []string{"name " + name, "address " + address} {
			if unique != "name " && taken[unique] {
				return nil, command.Usagef(cmd, "--ops has the %s twice; each member needs its own", unique)
			}
			taken[unique] = true
		}
		list = append(list, scrapeTarget{name, address})
	}
	if len(list) == 0 {
		return nil, command.Usagef(cmd, "--ops needs an address")
	}
	return list, nil
}

func newAlerts(env *command.Env) *cobra.Command {
	var v monitoring
	var format output.Format
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Generate alert rules for Prometheus",
		Long: `Generate alert rules for Prometheus, for one server and for ensembles: a server that is
down or unhealthy, a full disk or resource store, quotas that are nearly used up, damaged
messages and files, missing replicas, copies that differ, lost logs and journals, dead
letters, consumers that lag, server errors, missing backups. Every alert has a runbook in
docs/howto/alerts.md. Adjust the thresholds to your installation.`,
		Example: `  # in the directory of prometheus.yml
  freshet generate alerts > freshet-alerts.yml

  # the names of the alerts
  freshet generate alerts | grep 'alert:'

  # with links to the runbooks on your own web server
  freshet generate alerts --runbook https://wiki.example.com/freshet/alerts > freshet-alerts.yml

  # with a higher threshold for lag
  freshet generate alerts | sed 's/> 100000/> 1000000/' > freshet-alerts.yml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd, "job", v.Job); err != nil {
				return err
			}
			if err := check(cmd, "runbook", v.Runbook); err != nil {
				return err
			}
			return write(env, format, "alerts.yml", v)
		},
	}
	cmd.Flags().StringVar(&v.Job, "job", "freshet", jobUsage)
	cmd.Flags().StringVar(&v.Runbook, "runbook", "docs/howto/alerts.md",
		"`address` of the page with the runbooks; each alert links to its section there")
	output.AddFlag(cmd.Flags(), &format, output.FormatYAML, output.FormatJSON)
	return cmd
}
