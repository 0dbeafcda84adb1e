package servercmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/ops/adminsocket"
)

// newLink makes one-time links for whoever runs the server.
func newLink() *cobra.Command {
	var dataDir string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Make a one-time link to sign in as the system administrator",
		Long: `Make a link with which you sign in to the console as the system administrator,
once, within a quarter of an hour. Whoever has the link can use it: do not send it
through others.

The server has to run on this machine.`,
		Example: `  # sign in to the server whose data is in ./freshet-data
  freshet admin link

  # another server of this machine
  freshet admin link --data-dir freshet-data

  # the address alone, for a script that opens a browser
  link=$(freshet admin link 2> when.txt)`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			conn, err := adminsocket.Dial(ctx, dataDir, adminsocket.Request{Do: adminsocket.DoLink})
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }() // all is said
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			reply, err := conn.Next()
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), reply.Link); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "It works once, until %s.\n",
				reply.Ends.Local().Format(time.TimeOnly))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", dataDirectory(), "the server's data `directory`")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the server")
	return cmd
}
