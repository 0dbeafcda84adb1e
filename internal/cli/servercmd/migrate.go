package servercmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// MigrateReport receives the progress and the results of a migration. The server calls it
// from one goroutine.
type MigrateReport = interface {
	Step(text string)
	Progress(done, total int64)
	Moved(of, part string, topics int, messages uint64, subscriptions int, records uint64, sum string)
	Done(member, dataDir string, again bool)
}

func newMigrate(server Server) *cobra.Command {
	var from, to, file string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move the data of a single server into a new ensemble",
		Long: `Move the data of a single server into a new ensemble: resources, accounts and keys,
messages, subscriptions with their acknowledgements, consumer groups and schemas. Clients
keep their addresses, credentials, ids and positions.

Before: stop the server, create the ensemble with 'freshet ensemble init --from', which
takes over the server's keys, and install the bundle of its first member with 'freshet
ensemble join'. The ensemble must not run yet. The command writes the first member's data
directory; the other members copy the data from it when they start.

The old data directory is not changed. The command compares the copy with it, topic by
topic, and installs the copy only if all of it is equal. Repeat the command to continue
an interrupted migration. It needs as much disk space as the old data.

To go back, use 'freshet backup' on a member and 'freshet restore', which writes the data
directory of a single server.

Run the command as the user of the server.`,
		Example: `  # on the machine of the first member, which can read the old data directory
  freshet migrate --from /var/lib/freshet --config /etc/freshet.yaml

  # a member whose data directory is not in its configuration
  freshet migrate --from freshet-data --to a-data --config a.yaml

  # all steps, from one server to three
  freshet ensemble init --from freshet-data --base-url https://freshet.example.com \
    --out three a=10.0.0.1 b=10.0.0.2 c=10.0.0.3
  freshet ensemble join three/a.bundle --data-dir a-data --config a.yaml
  freshet migrate --from freshet-data --config a.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case from == "":
				return command.Usagef(cmd, "--from is missing; set the data directory of the old server")
			case file == "":
				return command.Usagef(cmd, "--config is missing; set the configuration of the ensemble's first "+
					"member, which freshet ensemble join wrote")
			}
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if to != "" {
				cfg.DataDir = to
			}
			p := &migratePrinter{stepPrinter: newSteps(cmd.ErrOrStderr()), out: cmd.OutOrStdout(), format: format}
			p.result.Parts = []movedPart{} // an empty list, not null
			if err := server.Migrate(cmd.Context(), from, cfg, p); err != nil {
				p.progress.Clear()
				return err
			}
			return p.print()
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.StringVar(&from, "from", "", "data `directory` of the old server, which must be stopped")
	f.StringVar(&to, "to", "", "data `directory` of the ensemble's first member (default: from its configuration)")
	f.StringVar(&file, "config", "", "configuration `file` of the ensemble's first member (YAML)")
	return cmd
}

// migratePrinter prints a line for each step, a progress line on a terminal, and at the end
// a table of the moved data.
type migratePrinter struct {
	*stepPrinter
	out    io.Writer
	format output.Format
	result migration
	end    string
}

// migration is the result of migrate in the form of -o json.
type migration struct {
	Member  string `json:"member"`
	DataDir string `json:"dataDir"`
	// Repeated is set if an earlier run has already moved all data.
	Repeated bool        `json:"repeated"`
	Parts    []movedPart `json:"parts"`
}

type movedPart struct {
	Of            string `json:"of"`
	Part          string `json:"part"`
	Topics        int    `json:"topics"`
	Messages      uint64 `json:"messages"`
	Subscriptions int    `json:"subscriptions"`
	Records       uint64 `json:"records"`
	Checksum      string `json:"checksum"`
}

func (m *movedPart) row() []string {
	return []string{
		m.Of, m.Part,
		count(uint64(m.Topics)), //nolint:gosec // a count is not negative
		count(m.Messages),
		count(uint64(m.Subscriptions)), //nolint:gosec // a count is not negative
		count(m.Records), m.Checksum,
	}
}

// Moved implements MigrateReport.
func (p *migratePrinter) Moved(of, part string, topics int, messages uint64, subscriptions int,
	records uint64, sum string,
) {
	p.result.Parts = append(p.result.Parts, movedPart{of, part, topics, messages, subscriptions, records, sum})
}

func count(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// Done implements MigrateReport.
func (p *migratePrinter) Done(member, dataDir string, again bool) {
	p.result.Member, p.result.DataDir, p.result.Repeated = member, dataDir, again
	p.end = fmt.Sprintf("All data was copied and verified. %s is the data directory of member %s.",
		dataDir, member)
	if again {
		p.end = fmt.Sprintf(
			"Nothing to do: all data was already moved to %s, the data directory of member %s.",
			dataDir, member)
	}
}

func (p *migratePrinter) print() error {
	p.progress.Clear()
	if p.format.IsData() {
		return output.Value(p.out, p.format, p.result)
	}
	table := output.Table{Columns: output.Columns("of", "part", "topics", "messages", "subscriptions", "records",
		"checksum")}
	for i := range p.result.Parts {
		table.Rows = append(table.Rows, p.result.Parts[i].row())
	}
	if err := table.Write(p.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, `
%s

Next: join the other members with their bundles, and start all members with freshet
serve. Keep the old data directory until every member has its copies: freshet ensemble
status and the condition ShardsReady of each cluster show this. Never start a server on
the old data directory again after the ensemble has served a client.
`, p.end)
	return err
}
