package ensemblecmd

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

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// loss is the server's report on a shard whose copies and log do not match.
type loss struct {
	Organization string `json:"organization"`
	Cluster      string `json:"cluster"`
	Shard        int    `json:"shard"`
	Owner        string `json:"owner,omitempty"`
	From         string `json:"from"`
	Fingerprint  string `json:"mark"`
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
		Short: "Restore service of a shard whose copies and log do not match",
		Long: `Restore service of a shard whose copies and log do not match. The cluster of such a shard
is not ready, with the reason LogLost. The command shows the content of the log and of
each member's copy and what would be lost, and asks for the cluster's name. It changes
nothing before you confirm. Only system administrators can use it; the audit log records
it.

The shard continues from the copy with the most messages and gets a new log. With --from
it continues from another member's copy, or from the log if the log still contains the
first message. The other copies are rebuilt from that source. If a member already serves
the shard, only the lost copies are rebuilt.

First start every member that has a copy: messages that exist only on a stopped member
are lost. If you have a backup that is newer, restore it instead.`,
		Example: `  # show what would be lost, then ask for confirmation
  freshet ensemble accept-loss acme/prod 3

  # continue from the log
  freshet ensemble accept-loss acme/prod 3 --from log

  # in a script: continue from the copy of member b, without confirmation
  freshet ensemble accept-loss acme/prod 3 --from b --yes`,
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
			response, err := conn.Do(cmd.Context(), &client.Request{Method: http.MethodGet, Path: path, Query: query})
			if err != nil {
				return err
			}
			var l loss
			if err := response.JSON(&l); err != nil {
				return err
			}
			shown := env.Out
			if !env.ResultIsText() { // a program reads standard output, and a person confirms
				shown = env.Err
			}
			if err := l.print(shown); err != nil {
				return err
			}
			if !yes {
				if err := confirm(env, name); err != nil {
					return err
				}
			}
			body, err := json.Marshal(map[string]string{"from": l.From, "mark": l.Fingerprint})
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
			return env.Done(command.Result{Kind: "shard", Name: args[0] + "/" + args[1], Action: "accepted loss"},
				"Accepted. The shard resumes within seconds; 'freshet get messagingclusters %s' shows when the "+
					"cluster is ready.", name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "",
		"continue from the copy of this `member`, or from \"log\" (default: the copy with the most messages)")
	f.BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// lossPath returns the API path of a shard's loss report and the name of its cluster.
func lossPath(cluster, shard string) (path, name string, err error) {
	organization, name, ok := strings.Cut(cluster, "/")
	if !ok || organization == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errs.Newf(errs.Invalid, "cluster %q is not valid; write ORGANIZATION/CLUSTER", cluster)
	}
	if _, err := strconv.ParseUint(shard, 10, 16); err != nil {
		return "", "", errs.Newf(errs.Invalid, "shard %q is not valid; write its number, starting at 0", shard)
	}
	return "/system/v1alpha1/shards/" + url.PathEscape(organization) + "/" + url.PathEscape(name) + "/" + shard +
		"/loss", name, nil
}

// print lists the content of the log and of every copy, and what would be lost.
func (l *loss) print(w io.Writer) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "Shard %d of cluster %s/%s\n", l.Shard, l.Organization, l.Cluster)
	switch {
	case l.Log == nil:
		fmt.Fprintln(text, "  log: gone")
	case l.Log.Last < l.Log.First:
		fmt.Fprintf(text, "  log: empty; its next message is %d\n", l.Log.First)
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
		fmt.Fprintf(text,
			"  copy of member %s: the member cannot be reached; messages that only it has would be lost\n", name)
	}
	if l.Owner != "" {
		fmt.Fprintf(text, "Member %s serves the shard and continues to do so.\n", l.Owner)
	} else if l.From == "log" {
		fmt.Fprintln(text, "The shard would continue from the log.")
	} else {
		fmt.Fprintf(text, "The shard would continue from the copy of member %s, with a new log.\n", l.From)
	}
	lost := false
	for _, c := range l.Copies {
		if c.GivenUp {
			lost = true
			fmt.Fprintf(text, "Lost: the copy of member %s, up to message %d (epoch %d)\n", c.Member,
				c.Position, c.Epoch)
		}
	}
	if l.LogMessagesLost > 0 {
		lost = true
		fmt.Fprintf(text, "Lost: the last %d messages of the log, up to message %d\n", l.LogMessagesLost, l.Log.Last)
	}
	if !lost {
		fmt.Fprintln(text, "Lost: no known messages")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

var errNotConfirmed = errs.New(errs.Precondition, "input is not the cluster's name; nothing was changed")

// confirm makes the user type the cluster's name.
func confirm(env *command.Env, name string) error {
	if err := env.Notef("Lost messages cannot be recovered. Type the cluster's name (%s) to continue: ",
		name); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(env.In, 1<<10)).ReadString('\n')
	if err != nil && line == "" || strings.TrimSpace(line) != name {
		return errNotConfirmed
	}
	return nil
}
