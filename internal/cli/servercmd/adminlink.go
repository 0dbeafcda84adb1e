package servercmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/ops/adminsocket"
)

// signInLink is a link in the form of -o json.
type signInLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// newLink returns the command that creates one-time sign-in links for the operator.
func newLink() *cobra.Command {
	var dataDir string
	var timeout time.Duration
	var format output.Format
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Create a one-time link to sign in as the system administrator",
		Long: `Create a link to sign in to the console as the system administrator, once, within 15
minutes. The link is a secret: anyone who has it can use it.

The server must be running on this machine.`,
		Example: `  # the server whose data is in ./freshet-data
  freshet admin link

  # another server on this machine
  freshet admin link --data-dir freshet-data

  # only the address, for a script that opens a browser
  link=$(freshet admin link 2> when.txt)`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			conn, err := adminsocket.Dial(ctx, dataDir, adminsocket.Request{Command: adminsocket.CommandLink})
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }() // the reply is complete
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			reply, err := conn.Next()
			if err != nil {
				return err
			}
			if format.IsData() {
				return output.Value(cmd.OutOrStdout(), format, signInLink{reply.Link, reply.Expires})
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), reply.Link); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "The link works once, until %s.\n",
				reply.Expires.Local().Format(time.TimeOnly))
			return err
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.StringVar(&dataDir, "data-dir", dataDirectory(), "data `directory` of the server")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the server")
	return cmd
}
