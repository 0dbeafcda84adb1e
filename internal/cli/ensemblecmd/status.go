package ensemblecmd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

const membersPath = "/system/v1alpha1/members"

// ensembleStatus is the ensemble as the called server reports it.
type ensembleStatus struct {
	Self       string   `json:"self"`
	Controller string   `json:"controller,omitempty"`
	EtcdLeader string   `json:"etcdLeader,omitempty"`
	LogLeader  string   `json:"logLeader,omitempty"`
	Members    []member `json:"members"`
	// Shards is passed on as it is.
	Shards   json.RawMessage `json:"shards,omitempty"`
	Streams  []stream        `json:"streams,omitempty"`
	Observed *time.Time      `json:"observed,omitempty"`
}

type member struct {
	Name            string     `json:"name"`
	Node            int        `json:"node"`
	Internal        string     `json:"internal"`
	Live            bool       `json:"live"`
	Ready           bool       `json:"ready"`
	Version         string     `json:"version,omitempty"`
	Started         *time.Time `json:"started,omitempty"`
	HTTP            string     `json:"http,omitempty"`
	HTTPS           string     `json:"https,omitempty"`
	Stream          string     `json:"stream,omitempty"`
	StreamTLS       string     `json:"streamTLS,omitempty"`
	ClockAhead      float64    `json:"clockAheadSeconds"`
	CertificateEnds *time.Time `json:"certificateEnds,omitempty"`
	Parts           []part     `json:"parts,omitempty"`
	QuarantineBytes int64      `json:"quarantineBytes,omitempty"`
	// Failing contains why the member cannot serve a cluster, by the cluster.
	Failing map[string]string `json:"failing,omitempty"`
	Problem string            `json:"problem,omitempty"`
}

func newStatus(env *command.Env) *cobra.Command {
	var format output.Format
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the members of an ensemble and their health",
		Long: `Show the members of an ensemble as one server sees them: which are live and ready, which
runs the controllers, which leads etcd and the message log, their versions, the
differences of their clocks, and their problems. Only system administrators can use it.

The command also shows the replicas of the message log that are missing and the damaged
files of members, and in one line how many replicas are current and when files were
last verified. With --all it shows every stream and every part. The values are at most
ten seconds old.

The exit code is 1 if a member has a problem or a replica is missing.`,
		Example: `  # on the machine of a member, with its data directory
  FRESHET_DATA_DIR=/var/lib/freshet freshet ensemble status

  # with every stream of the log and every part of the files
  freshet ensemble status --all

  # from another machine
  freshet ensemble status --context production

  # for a script
  freshet ensemble status -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var g ensembleStatus
			if err := env.Call(cmd.Context(), http.MethodGet, membersPath, &g); err != nil {
				return err
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, g)
			}
			return g.print(env, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show every stream of the log and every part of the members' files")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func (g *ensembleStatus) print(env *command.Env, all bool) error {
	if len(g.Members) == 0 {
		return env.Println("The server runs alone: its configuration has no members.")
	}
	table := output.Table{Columns: output.Columns("Name", "State", "Does", "Version", "Up", "Clock", "Internal")}
	wrong := 0
	for _, m := range g.Members {
		state := "lost"
		switch {
		case m.Ready:
			state = "ready"
		case m.Live:
			state = "live"
		}
		up := ""
		if m.Started != nil {
			up = output.Age(time.Since(*m.Started))
		}
		table.Rows = append(table.Rows,
			[]string{
				m.Name, state, strings.Join(g.roles(m.Name), ","), m.Version, up,
				fmt.Sprintf("%+.3fs", m.ClockAhead), m.Internal,
			})
		if m.Problem != "" {
			wrong++
		}
	}
	if err := table.Write(env.Out); err != nil {
		return err
	}
	for _, m := range g.Members {
		if m.Problem != "" {
			if _, err := fmt.Fprintf(env.Out, "Problem: member %s: %s\n", m.Name, output.Clean(m.Problem)); err != nil {
				return err
			}
		}
	}
	degraded, err := g.printReplicas(env, all)
	if err != nil {
		return err
	}
	if wrong > 0 || degraded {
		return command.ExitSilently(1)
	}
	return nil
}

// roles lists what a member runs or leads for the ensemble.
func (g *ensembleStatus) roles(name string) (list []string) {
	for _, role := range []struct{ name, member string }{
		{"controllers", g.Controller}, {"etcd-leader", g.EtcdLeader}, {"log-leader", g.LogLeader},
	} {
		if role.member == name {
			list = append(list, role.name)
		}
	}
	return list
}
