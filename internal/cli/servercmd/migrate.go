package servercmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// MigrateReport is what a migration reports to. The server calls it from one goroutine.
type MigrateReport = interface {
	Step(text string)
	Progress(done, total int64)
	Moved(of, part string, topics int, messages uint64, subscriptions int, records uint64, sum string)
	Done(member, dataDir string, again bool)
}

func newMigrate(server Server) *cobra.Command {
	var from, to, file string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move the data of a server into a new group",
		Long: `Move the data of a server that has run alone into a new group: resources, accounts
and keys, messages, subscriptions with what they have acknowledged, consumer groups
and schemas. Clients keep their addresses, credentials, ids and places.

The server is stopped, and the group does not run yet. It was made with
'freshet cluster init --from', so that it has the server's keys, and the bundle of its
first member was unpacked with 'freshet cluster join'. This command makes that
member's data directory; the others get everything from it when they start.

The old data directory is not changed. What was copied is compared with it, topic by
topic, and nothing is put in place before all of it is the same. A run that was cut
short goes on with the same command. It needs as much room as the old data takes.

To go back: 'freshet backup' on a member, and 'freshet restore', which makes the data
directory of a server that runs alone.

Run it as the user of the server.`,
		Example: `  # on the machine of the first member, which has the old data directory, too
  freshet migrate --from /var/lib/freshet --config /etc/freshet.yaml

  # a member whose data directory is not in its configuration
  freshet migrate --from freshet-data --to a-data --config a.yaml

  # everything, from one server to three
  freshet cluster init --from freshet-data --base-url https://freshet.example.com \
    --output three a=10.0.0.1 b=10.0.0.2 c=10.0.0.3
  freshet cluster join three/a.bundle --data-dir a-data --config a.yaml
  freshet migrate --from freshet-data --config a.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case from == "":
				return command.Usagef(cmd, "--from is required: the data directory of the server that moves")
			case file == "":
				return command.Usagef(cmd, "--config is required: the configuration of the group's first member, "+
					"which freshet cluster join has written")
			}
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if to != "" {
				cfg.DataDir = to
			}
			p := &migratePrinter{stepPrinter: newSteps(cmd.ErrOrStderr()), out: cmd.OutOrStdout()}
			if err := server.Migrate(cmd.Context(), from, cfg, p); err != nil {
				p.progress.Clear()
				return err
			}
			return p.print()
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "data `directory` of the server that moves, which is stopped")
	f.StringVar(&to, "to", "", "data `directory` of the group's first member (default: as its configuration says)")
	f.StringVar(&file, "config", "", "configuration `file` of the group's first member (YAML)")
	return cmd
}

// migratePrinter prints a line for each step, how far it is on a terminal, and at the
// end a table of what was moved.
type migratePrinter struct {
	*stepPrinter
	out  io.Writer
	rows [][]string
	end  string
}

// Moved implements MigrateReport.
func (p *migratePrinter) Moved(of, part string, topics int, messages uint64, subscriptions int,
	records uint64, sum string,
) {
	p.rows = append(p.rows, []string{
		of, part, count(uint64(topics)), count(messages), count(uint64(subscriptions)), count(records), sum, //nolint:gosec // counts
	})
}

func count(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// Done implements MigrateReport.
func (p *migratePrinter) Done(member, dataDir string, again bool) {
	p.end = fmt.Sprintf("Everything was compared and is the same. %s is the data directory of member %s.",
		dataDir, member)
	if again {
		p.end = fmt.Sprintf(
			"Nothing is left to do: everything was moved to %s, the data directory of member %s, before.",
			dataDir, member)
	}
}

func (p *migratePrinter) print() error {
	p.progress.Clear()
	table := output.Table{Columns: output.Columns("of", "part", "topics", "messages", "subscriptions", "records",
		"checksum"), Rows: p.rows}
	if err := table.Write(p.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, `
%s

Next: join the other members with their bundles, and start all of them with freshet
serve. Keep the old data directory until every member has its copies: freshet cluster
status and the condition ShardsReady of each cluster say so. Never start a server on
it again once the group has served a client.
`, p.end)
	return err
}
