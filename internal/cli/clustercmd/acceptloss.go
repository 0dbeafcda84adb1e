package clustercmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// loss is what the server tells.
type loss struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Shard        int    `json:"shard"`
	Owner        string `json:"owner,omitempty"`
	From         string `json:"from"`
	Mark         string `json:"mark"`
	Log          *struct {
		First uint64 `json:"first"`
		Last  uint64 `json:"last"`
	} `json:"log,omitempty"`
	LogMessagesLost uint64 `json:"logMessagesLost"`
	Copies          []struct {
		Member   string `json:"member"`
		Position uint64 `json:"position"`
		Epoch    uint64 `json:"epoch"`
		GivenUp  bool   `json:"givenUp"`
		Problem  string `json:"problem,omitempty"`
	} `json:"copies"`
	Absent []string `json:"absent,omitempty"`
}

func newAcceptLoss(env *command.Env) *cobra.Command {
	var from string
	var yes bool
	cmd := &cobra.Command{
		Use:   "accept-loss ORGANIZATION/CLUSTER SHARD",
		Short: "Go on with a shard whose copies and log do not fit together",
		Long: `Go on with a shard whose copies and log do not fit together: its cluster is not ready, and
says why with the reason LogLost. First it shows what the log and each member's copy
have, and what would be given up; then it asks for the cluster's name, and only then is
anything changed. For system administrators; it is written to the audit log.

The shard goes on from the copy that has most, with a new log behind it, unless --from
says otherwise: another member's copy, or the log, when that still begins with the first
message. The other copies begin anew from that. When a member serves the shard, only the
copies that are lost begin anew.

Before that, start every member that has a copy: what only a member has that is away is
lost. If you have a newer backup, restore that instead.`,
		Example: `  # see what is lost, and decide
  freshet cluster accept-loss acme/prod 3

  # go on with what the log has
  freshet cluster accept-loss acme/prod 3 --from log

  # in a script, with the copy of member b
  freshet cluster accept-loss acme/prod 3 --from b --yes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, name, err := lossPath(args[0], args[1])
			if err != nil {
				return err
			}
			conn, err := env.Client()
			if err != nil {
				return err
			}
			defer conn.Close()
			query := url.Values{}
			if from != "" {
				query.Set("from", from)
			}
			answer, err := conn.Do(cmd.Context(), &client.Request{Method: http.MethodGet, Path: path, Query: query})
			if err != nil {
				return err
			}
			var l loss
			if err := answer.JSON(&l); err != nil {
				return err
			}
			if err := l.print(env.Out); err != nil {
				return err
			}
			if !yes {
				if err := confirm(env, name); err != nil {
					return err
				}
			}
			body, err := json.Marshal(map[string]string{"from": l.From, "mark": l.Mark})
			if err != nil {
				return err
			}
			if _, err := conn.Do(cmd.Context(),
				&client.Request{
					Method: http.MethodPost, Path: path, Body: body,
					Header: http.Header{"Content-Type": {"application/json"}},
				}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "Accepted. The shard goes on within seconds; 'freshet get "+
				"messagingclusters %s' says when the cluster is ready.\n", name)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "go on from the copy of this `member`, or from \"log\"")
	f.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// lossPath is where a shard's loss is told, and the name of its cluster.
func lossPath(cluster, shard string) (path, name string, err error) {
	organization, name, ok := strings.Cut(cluster, "/")
	if !ok || organization == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errs.Newf(errs.Invalid, "%q is not a cluster; write ORGANIZATION/CLUSTER", cluster)
	}
	if _, err := strconv.ParseUint(shard, 10, 16); err != nil {
		return "", "", errs.Newf(errs.Invalid, "%q is not a shard; write its number, from 0 on", shard)
	}
	return "/system/v1alpha1/shards/" + url.PathEscape(organization) + "/" + url.PathEscape(name) + "/" + shard +
		"/loss", name, nil
}

// print tells exactly what is there and what is given up.
func (l *loss) print(w io.Writer) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "Shard %d of cluster %s/%s\n", l.Shard, l.Organization, l.Cluster)
	switch {
	case l.Log == nil:
		fmt.Fprintln(text, "  log: gone")
	case l.Log.Last < l.Log.First:
		fmt.Fprintf(text, "  log: empty, it would go on with message %d\n", l.Log.First)
	default:
		fmt.Fprintf(text, "  log: messages %d to %d\n", l.Log.First, l.Log.Last)
	}
	for _, c := range l.Copies {
		fmt.Fprintf(text, "  copy of member %s: up to message %d (epoch %d)", c.Member, c.Position, c.Epoch)
		if c.Problem != "" {
			fmt.Fprintf(text, "; %s", output.Clean(c.Problem))
		}
		fmt.Fprintln(text)
	}
	for _, name := range l.Absent {
		fmt.Fprintf(text, "  copy of member %s: it cannot be asked; what only it has would be lost\n", name)
	}
	if l.Owner != "" {
		fmt.Fprintf(text, "The shard is served by member %s. It goes on as it is.\n", l.Owner)
	} else if l.From == "log" {
		fmt.Fprintln(text, "It goes on from the log.")
	} else {
		fmt.Fprintf(text, "It goes on from the copy of member %s, with a new log.\n", l.From)
	}
	given := false
	for _, c := range l.Copies {
		if c.GivenUp {
			given = true
			fmt.Fprintf(text, "Given up: the copy of member %s, up to message %d (epoch %d)\n", c.Member,
				c.Position, c.Epoch)
		}
	}
	if l.LogMessagesLost > 0 {
		given = true
		fmt.Fprintf(text, "Given up: the last %d messages of the log, up to message %d\n",
			l.LogMessagesLost, l.Log.Last)
	}
	if !given {
		fmt.Fprintln(text, "Given up: nothing that is known of")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

var errNotConfirmed = errs.New(errs.Precondition, "that is not the cluster's name; nothing was changed")

// confirm asks for the cluster's name.
func confirm(env *command.Env, name string) error {
	if _, err := fmt.Fprintf(env.Err, "What is given up cannot be had back. Type the cluster's name (%s) to go on: ",
		name); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(env.In, 1<<10)).ReadString('\n')
	if err != nil && line == "" {
		return errNotConfirmed
	}
	if strings.TrimSpace(line) != name {
		return errNotConfirmed
	}
	return nil
}
