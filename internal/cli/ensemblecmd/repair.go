package ensemblecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// journals is the server's report on the journals of a cluster.
type journals struct {
	Journals []journalReport `json:"journals"`
}

type journalReport struct {
	Name   string `json:"name"`
	Lost   string `json:"lost"`
	Needed uint64 `json:"needed"`
	Copies []struct {
		Member   string `json:"member"`
		Position uint64 `json:"position"`
		Sum      string `json:"sum"`
		Missing  bool   `json:"missing"`
		Problem  string `json:"problem"`
	} `json:"copies"`
	From string `json:"from"`
	Mark string `json:"mark"`
}

func newRepair(env *command.Env) *cobra.Command {
	var accept, from string
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair ORGANIZATION/CLUSTER",
		Short: "Show the journals of a cluster, and restore service of a lost one",
		Long: `Show the journals of a cluster: its catalogue, its schemas and its consumer groups. Every
member has a copy of each journal. The command shows the last position in each copy and a sum
of all records up to it.

A journal that has lost records is rebuilt from the longest copy without a command, if most
members are reachable and that copy has every record that is known to have existed. Otherwise
the journal stays closed, and the cluster is not ready with the reason JournalLost. First start
every member. If records are lost in spite of that, --accept-loss makes the journal continue
from the longest copy, or from the copy of the member that --from names. Only system
administrators can use it; the audit log records it.`,
		Example: `  # show what each member has
  freshet ensemble repair acme/prod

  # continue a lost journal from the longest copy, after a confirmation
  freshet ensemble repair acme/prod --accept-loss schemas

  # in a script: continue from the copy of member b, without confirmation
  freshet ensemble repair acme/prod --accept-loss schemas --from b --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRepair(cmd.Context(), env, args[0], accept, from, yes)
		},
	}
	f := cmd.Flags()
	f.StringVar(&accept, "accept-loss", "", "let this lost `journal` continue without the records that no copy has")
	f.StringVar(&from, "from", "", "continue from the copy of this `member` (default: the longest copy)")
	f.BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func runRepair(ctx context.Context, env *command.Env, cluster, accept, from string, yes bool) error {
	organization, name, ok := strings.Cut(cluster, "/")
	if !ok || organization == "" || name == "" || strings.Contains(name, "/") {
		return errs.Newf(errs.Invalid, "cluster %q is not valid; write ORGANIZATION/CLUSTER", cluster)
	}
	conn, err := env.Client()
	if err != nil {
		return err
	}
	defer conn.Close()
	path, query := "/system/v1alpha1/journals/"+url.PathEscape(organization)+"/"+url.PathEscape(name), url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	response, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return err
	}
	var list journals
	if err := response.JSON(&list); err != nil {
		return err
	}
	shown := env.Out
	if !env.ResultIsText() { // a program reads standard output, and a person confirms
		shown = env.Err
	}
	if err := list.print(shown, cluster); err != nil {
		return err
	}
	if accept == "" {
		return nil
	}
	return acceptJournal(ctx, env, conn, path, cluster, name, list.find(accept), yes)
}

func (l *journals) find(name string) *journalReport {
	for i := range l.Journals {
		if l.Journals[i].Name == name {
			return &l.Journals[i]
		}
	}
	return nil
}

func acceptJournal(ctx context.Context, env *command.Env, conn *client.Client, path, cluster, name string,
	j *journalReport, yes bool,
) error {
	switch {
	case j == nil:
		return errs.New(errs.NotFound, "cluster has no such journal")
	case j.Lost == "":
		return errs.Newf(errs.Precondition, "journal %s is not lost, so there is no loss to accept", j.Name)
	case j.From == "":
		return errs.Newf(errs.Precondition, "no reachable member has a copy of journal %s; start the members", j.Name)
	}
	if !yes {
		if err := confirm(env, name); err != nil {
			return err
		}
	}
	body, err := json.Marshal(map[string]string{"journal": j.Name, "from": j.From, "mark": j.Mark})
	if err != nil {
		return err
	}
	if _, err := conn.Do(ctx, &client.Request{
		Method: http.MethodPost, Path: path, Body: body, Header: http.Header{"Content-Type": {"application/json"}},
	}); err != nil {
		return err
	}
	return env.Done(command.Result{Kind: "journal", Name: cluster + "/" + j.Name, Action: "accepted loss"},
		"Accepted. The journal continues from the copy of member %s within seconds; 'freshet get messagingclusters "+
			"%s' shows when the cluster is ready.", j.From, name)
}

// print lists the journals and the copies of each.
func (l *journals) print(w io.Writer, cluster string) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "Journals of cluster %s\n", cluster)
	for i := range l.Journals {
		l.Journals[i].print(text, cluster)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (j *journalReport) print(text *strings.Builder, cluster string) {
	fmt.Fprintf(text, "%s: records up to position %d\n", output.Clean(j.Name), j.Needed)
	for _, c := range j.Copies {
		fmt.Fprintf(text, "  copy of member %s: up to position %d", c.Member, c.Position)
		if c.Sum != "" {
			fmt.Fprintf(text, ", sum %s", output.Clean(c.Sum))
		}
		if c.Missing {
			fmt.Fprint(text, "; the member cannot be reached")
		}
		if c.Problem != "" {
			fmt.Fprintf(text, "; %s", output.Clean(c.Problem))
		}
		fmt.Fprintln(text)
	}
	if j.Lost == "" {
		return
	}
	fmt.Fprintf(text, "  lost: %s\n", output.Clean(j.Lost))
	if j.From == "" {
		fmt.Fprintln(text, "  no copy can be used; start the members that cannot be reached")
		return
	}
	for _, c := range j.Copies {
		if c.Member == j.From {
			fmt.Fprintf(text, "  would continue from the copy of member %s; %d records would be lost\n", j.From,
				j.Needed-min(j.Needed, c.Position))
		}
	}
	fmt.Fprintf(text, "  accept that with: freshet ensemble repair %s --accept-loss %s\n", cluster,
		output.Clean(j.Name))
}
